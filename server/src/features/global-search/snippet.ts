import { digitsOf, foldLetters } from '../../shared/search-text.ts'

/** Pure: the piece of a text that shows why a record was found. */
const snippetMax = 160
/** Of what is shown, before the word. */
const before = 48
const blockSize = 256

/**
 * The text around the first of the words in the first of the texts that holds one, as it is written, on one line, at most
 * 160 characters. `digits` are those of a telephone number: a text that holds them in any spelling is shown from its start.
 */
export function snippetOf(
  texts: readonly string[],
  words: readonly string[],
  digits: string | undefined,
): string | null {
  for (const text of texts) {
    const at = firstHit(text, words)
    if (at !== undefined) return excerpt(text, at)
    if (digits !== undefined && text.length <= 60 && digitsOf(text).includes(digits)) return excerpt(text, 0)
  }
  return null
}

/** Where the first word stands in the text as it is written. */
function firstHit(text: string, words: readonly string[]): number | undefined {
  const folded = foldLetters(text)
  const hits = words.map((word) => folded.indexOf(word)).filter((at) => at >= 0)
  return hits.length === 0 ? undefined : originalPosition(text, Math.min(...hits))
}

/** Folding works on letters one by one, so the position is found block by block, then letter by letter. */
function originalPosition(text: string, foldedPosition: number): number {
  let at = 0
  let left = foldedPosition
  while (at < text.length) {
    const isSplitPair = /[\ud800-\udbff]/.test(text.charAt(at + blockSize - 1))
    const block = text.slice(at, at + blockSize + (isSplitPair ? 1 : 0))
    const length = foldLetters(block).length
    if (left < length) break
    left -= length
    at += block.length
  }
  for (const letter of text.slice(at, at + blockSize + 1)) {
    const length = foldLetters(letter).length
    if (left < length) break
    left -= length
    at += letter.length
  }
  return at
}

function excerpt(text: string, at: number): string {
  const from = at <= before ? 0 : wordStart(text, at - before, at)
  const ahead = text.slice(from, from + 2 * snippetMax)
  // From the end of the cut one letter may be half.
  const line = ahead.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  const opening = from > 0 ? '… ' : ''
  if (opening.length + line.length <= snippetMax && from + ahead.length >= text.length)
    return (opening + line).toWellFormed()
  const cut = line.slice(0, snippetMax - opening.length - 2)
  const end = cut.lastIndexOf(' ')
  return `${opening}${(end > before * 2 ? cut.slice(0, end) : cut).replace(/[\ud800-\udbff]$/, '')} …`
}

/** The start of the next word after `from`, where one begins before `at`. */
function wordStart(text: string, from: number, at: number): number {
  const space = text.slice(from, at).search(/\s/)
  const start = space < 0 ? from : from + space + 1
  return /[\udc00-\udfff]/.test(text.charAt(start)) ? start + 1 : start
}
