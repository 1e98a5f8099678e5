import type { FieldBehaviour } from './behaviour.ts'
import type { DataTypeKey } from './data-types.ts'

export interface FieldOption {
  readonly value: string
  readonly label: string
}

export interface Validation {
  readonly minLength?: number
  readonly maxLength?: number
  /** RE2 syntax; the whole value must match. */
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  /** Digits after the point of a decimal, 0 to 18. */
  readonly scale?: number
}

/** A field of an object, as it was defined. */
export interface Field {
  readonly fieldId: string
  readonly fieldKey: string
  readonly label: string
  readonly dataType: DataTypeKey
  /** Unquoted; columns are named by the service: `f_…`, with the shadow `x_…` beside it. */
  readonly column: string
  readonly required: boolean
  /** Set by the service: a body that names it is refused. */
  readonly readOnly: boolean
  readonly unique: boolean
  readonly indexed: boolean
  readonly indexState: 'none' | 'building' | 'ready' | 'failed'
  readonly searchable: boolean
  readonly searchTag: string | null
  readonly options: readonly FieldOption[] | null
  readonly validation: Validation
  readonly referenceObjectId: string | null
  /** Of a field of a native object, where the model was read with behaviours. */
  readonly behaviour?: FieldBehaviour | undefined
}
