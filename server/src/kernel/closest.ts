/** The candidate that fewest changes make of the name; undefined when that takes more than a third of it. */
export function closest(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 60) return undefined
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const [best] = ranked
  return best && best.distance <= Math.max(1, Math.floor(name.length / 3)) ? best.candidate : undefined
}

/** Levenshtein: insertions, deletions and replacements. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
