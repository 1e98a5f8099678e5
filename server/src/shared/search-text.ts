/**
 * Text as search compares it: compatibility forms unified, diacritics dropped, lower case with one small sigma (which of
 * the two a Σ becomes depends on what follows it), white space single, control and private-use characters dropped (they
 * structure a document, see below). Applied to documents and to what is searched for.
 */
export function foldForSearch(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\p{M}]/gu, '')
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[\p{Co}\p{Cn}]/gu, '')
    .trim()
}

const partSeparator = '\x1f'

/** The tag of the n-th searchable field of an object: one private-use character, which folding keeps out of any text. */
export function searchTag(ordinal: number): string {
  return String.fromCharCode(0xe000 + ordinal)
}

/** The search document of a record: for each field its tag and its folded text. Null when there is nothing to find. */
export function searchDocument(parts: readonly { readonly tag: string; readonly text: string }[]): string | null {
  const filled = parts
    .map((part) => ({ tag: part.tag, text: foldForSearch(part.text) }))
    .filter((part) => part.text !== '')
  return filled.length === 0 ? null : filled.map((part) => part.tag + part.text).join(partSeparator)
}

/**
 * LIKE patterns for what was searched for: each word must occur somewhere. The longest comes first, it drives the index.
 * Empty when nothing searchable was asked for.
 */
export function searchPatterns(search: string): string[] {
  const words = [...new Set(foldForSearch(search).split(' '))].filter((word) => word !== '')
  return words.sort((a, b) => b.length - a.length).map((word) => `%${escapeLike(word)}%`)
}

/** Takes the meaning from what LIKE would read as a wildcard. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&')
}
