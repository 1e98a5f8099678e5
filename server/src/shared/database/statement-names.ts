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

/**
 * Longer texts come from filters with many values. They are never the same twice, a plan of one takes megabytes in every
 * connection, and a map of them would hold gigabytes here.
 */
const textMax = 8192

/** The name of a statement; undefined for one that is prepared for this time only. */
export function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= namesMax || text.length > textMax) return known
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
