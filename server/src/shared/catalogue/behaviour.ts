import type { TSchema } from 'typebox'

/**
 * What a native object does beside keeping values: it fills in what a body leaves out, works things out, refuses what
 * does not fit together. Made from the descriptor of its module, attached to its definition when a model is read, and
 * obeyed by every write of its records (shared/records). Nothing in it touches the database.
 */
export interface ObjectBehaviour {
  /** What there is to know of fields beyond their definition, by field key. */
  readonly fields: ReadonlyMap<string, FieldBehaviour>
  /**
   * What the service works out from what is written. Receives the record on the wire as it would be after the write,
   * defaults included, and as it was before (undefined on creation); returns the fields that it sets. Throws a catalogued
   * failure that names a field where the values do not fit together.
   */
  derive(after: WireValues, before: WireValues | undefined, moment: Moment): WireValues
  /** What a hit of a search shows under the name of a record: the first of these fields that has a value. */
  readonly subtitleFields: readonly string[]
  /** What `search` finds a record by beside its searchable fields: values inside of lists. */
  alsoFoundBy(record: WireValues): readonly string[]
  /** Fields that say why a record was archived: they become empty when it is restored. */
  readonly clearedOnRestore: readonly string[]
}

export interface FieldBehaviour {
  readonly description: string
  /** A value on the wire. */
  readonly example: unknown
  /** What a creation without the field holds, on the wire. */
  readonly default?: unknown
  /** Of a json field: the shape of its value. What is `readOnly` in it is taken from bodies, and worked out. */
  readonly schema?: TSchema
  /** Of a field that shows the first of a list: the list, which imports read it into. */
  readonly readInto?: string
}

/** Values by field key as clients read them. A field without a value is null or absent: both mean the same. */
export type WireValues = Readonly<Record<string, unknown>>

/** When, and by whom. */
export interface Moment {
  /** ISO 8601. */
  readonly now: string
  /** The user who writes, or null for a credential that acts without one. */
  readonly userId: string | null
}

/** Behaviours by the key of their object. */
export type Behaviours = ReadonlyMap<string, ObjectBehaviour>

export const noBehaviours: Behaviours = new Map()
