import type { ObjectAccess } from '../access/permissions.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import type { Field } from '../catalogue/field.ts'
import { foldForSearch, looksLikePhone, phoneDigits, searchDocument } from '../search-text.ts'

/** What a record is found by, from the values of its fields. */
export interface SearchDocument {
  /** Each text folded, behind the tag of the field that it comes from. */
  readonly content: string
  /** The folded name of the record; null where the field that names it is not searchable, or empty. */
  readonly title: string | null
}

/** Longer names are the same as far as ranking goes, and would not fit an index. */
const titleMax = 255

/** Null when there is nothing to find. `readValue` gives a value as it is stored. */
export function documentOf(object: ObjectDefinition, readValue: (field: Field) => unknown): SearchDocument | null {
  const texts = object.fields.flatMap((field) =>
    // Once each: a number that is also given as E.164 has the same digits.
    [...new Set(textsOf(object, field, readValue(field)).flatMap((text) => [text, ...digitsIn(field, text)]))].map(
      (text) => ({ tag: tagOf(object, field), text }),
    ),
  )
  const content = searchDocument(texts)
  if (content === null) return null
  const { nameField } = object
  const [name] = nameField.searchTag === null ? [] : textsOf(object, nameField, readValue(nameField))
  // Never half of a pair of surrogates at the end.
  const title =
    name === undefined
      ? ''
      : foldForSearch(name)
          .slice(0, titleMax)
          .replace(/[\ud800-\udbff]$/, '')
  return { content, title: title || null }
}

/** The texts of a field by which its record is found, as they are written. */
export function textsOf(object: ObjectDefinition, field: Field, value: unknown): readonly string[] {
  if (value === null || value === undefined) return []
  if (field.searchTag === null) {
    // Asked of one field at a time, so that it is known which field a text comes from: who may not read the field must
    // not find the record by it.
    return object.behaviour?.alsoFoundBy({ [field.fieldKey]: value }) ?? []
  }
  if (typeof value !== 'string') return []
  // People search for what they see: the label of an option, not its key.
  return [field.options?.find((option) => option.value === value)?.label ?? value]
}

/** The digits of telephone numbers, where the text is one. */
function digitsIn(field: Field, text: string): readonly string[] {
  const isPhone = field.dataType === 'phone' || (field.dataType === 'json' && looksLikePhone(text))
  return isPhone ? phoneDigits(text) : []
}

/** Does a change of the field change the document? */
export function isInDocument(object: ObjectDefinition, field: Field): boolean {
  return field.searchTag !== null || object.behaviour !== undefined
}

/**
 * The mark of a field's texts. Searchable fields were given one; what a behaviour finds in other fields is marked by their
 * key: one of the 65,534 characters of plane 15, which folding keeps out of any text as it does the others. A test holds
 * that no two fields of a module have the same.
 */
export function tagOf(object: ObjectDefinition, field: Field): string {
  return field.searchTag ?? (object.behaviour ? keyTag(field.fieldKey) : '')
}

export function keyTag(fieldKey: string): string {
  let hash = 0x811c9dc5 // FNV-1a
  for (const letter of fieldKey) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0
  return String.fromCodePoint(0xf0000 + (hash % 0xfffe))
}

/**
 * The tags of what the caller may read of an object: words in other fields must not make a record appear. Null when it
 * reads everything.
 */
export function searchTagsOf({ object, readable, readsEveryField }: ObjectAccess): string | null {
  return readsEveryField ? null : readable.map((field) => tagOf(object, field)).join('')
}
