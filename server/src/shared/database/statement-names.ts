/**
 * Prepared statements by text: planning a secured page of records costs more than running it. A text earns a name by
 * coming back, and the number of names is bounded, because filters come in endless shapes and every connection keeps
 * every plan it has made.
 */
const names = new Map<string, string>()
const namesMax = 500
/** Names are never used again, since a connection may still hold a stale plan under an old one. */
let namesMade = 0
const seen = new Map<string, number>()
const seenMax = 2000

/** The name of a statement; undefined for one that is prepared for this time only. */
export function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= namesMax) return known
  const uses = (seen.get(text) ?? 0) + 1
  if (uses < 3) {
    if (seen.size >= seenMax) seen.clear()
    seen.set(text, uses)
    return undefined
  }
  seen.delete(text)
  const name = `p${++namesMade}`
  names.set(text, name)
  return name
}

/** Connections hold a stale plan under the name of this text: the next use goes without one, later ones with a new one. */
export function forgetName(text: string): void {
  names.delete(text)
}
