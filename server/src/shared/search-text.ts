import parsePhoneNumber from 'libphonenumber-js'
import { fail } from '../kernel/errors.ts'

/**
 * Text as search compares it: compatibility forms unified, diacritics dropped, lower case with one small sigma (which of
 * the two a Σ becomes depends on what follows it), white space single, control and private-use characters dropped (they
 * structure a document, see below). Applied to documents and to what is searched for.
 */
export function foldForSearch(text: string): string {
  return foldLetters(text.replace(/[\s\p{Cc}]+/gu, ' '))
    .replaceAll(/ +/g, ' ')
    .trim()
}

/** The same letter by letter: white space and control characters stay as they are, so what is found can be found again. */
export function foldLetters(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\p{M}]/gu, '')
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replace(/[\p{Co}\p{Cn}]/gu, '')
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

const phoneLike = /^[+\d\s().\-/]+$/
const extension = /\s*(x|ext\.?)\s*\d+$/i

/**
 * The digits by which people look for a telephone number: with the code of its country, and as they dial it at home
 * (ITU-T E.123), where that is not a part of the former; without a country code there is one form. Extensions are left
 * out: they are found as they are written.
 */
export function phoneDigits(number: string): string[] {
  const parsed = parsePhoneNumber(number)
  if (!parsed) {
    const digits = digitsOf(number.replace(extension, ''))
    return digits.length < phoneDigitsMin ? [] : [digits]
  }
  const international = digitsOf(parsed.number)
  const national = digitsOf(parsed.formatNational().replace(extension, ''))
  return international.includes(national) ? [international] : [international, national]
}

/** Four digits are the shortest extension of a number that somebody would look for. */
const phoneDigitsMin = 4
export const digitsOf = (text: string) => text.replaceAll(/\D/g, '')

export function looksLikePhone(text: string): boolean {
  const number = text.replace(extension, '')
  return phoneLike.test(number) && digitsOf(number).length >= phoneDigitsMin
}

/**
 * The LIKE pattern for the digits of what was searched for, where it looks like a telephone number; else null. The prefix
 * of international calls (00) and the zero that is not dialled from abroad, +44 (0)20, are not part of a number.
 */
export function digitsPattern(search: string): string | null {
  if (!looksLikePhone(search)) return null
  const digits = digitsOf(search.replace(extension, '').replace('(0)', ''))
  return `%${digits.replace(/^00(?=\d{6})/, '')}%`
}

/**
 * LIKE patterns for what was searched for: each word must occur somewhere. The longest comes first, it drives the index.
 * Empty when nothing searchable was asked for.
 */
export function searchPatterns(search: string): string[] {
  const words = [...new Set(foldForSearch(search).split(' '))].filter((word) => word !== '')
  return words.sort((a, b) => b.length - a.length).map((word) => `%${escapeLike(word)}%`)
}

/** What was searched for, ready for the database. */
export interface Words {
  /** LIKE patterns, the longest first; empty when nothing can be found. */
  readonly patterns: readonly string[]
  /** See `digitsPattern`. */
  readonly digits: string | null
}

const wordsMax = 16

/** Throws `validation_failed`, naming `field`, when there are more than 16 different words. */
export function wordsOf(search: string, field: string): Words {
  const patterns = searchPatterns(search)
  if (patterns.length <= wordsMax) return { patterns, digits: digitsPattern(search) }
  throw fail('validation_failed', { field, message: `Expected at most ${wordsMax} different words.` })
}

/** Takes the meaning from what LIKE would read as a wildcard. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&')
}
