import type { TSchema } from 'typebox'
import type { DataTypeKey } from '../../shared/catalogue/data-types.ts'
import { requireTransition, requireUnlocked, stateOf, timesOfStates } from './descriptors/states.ts'

/**
 * A native module, declared once (contract 5): what a record of it holds, which states it goes through, what the service
 * works out by itself and what it stands in relation to. From the descriptor alone come its 13 operations, its objects in
 * every application, its part of the contract and of global search. A descriptor is data: it reads as documentation.
 */
export interface ModuleDescriptor {
  /** In paths and scopes: `/modules/{key}`, `modules.<key>.read`. Kebab-case, plural where the field says so. */
  readonly key: string
  readonly label: string
  readonly pluralLabel: string
  /** What it is for, for the contract: a sentence or two. */
  readonly description: string
  /** The field that names a record in lists, references and search. */
  readonly nameField: string
  /** What a hit in global search shows under its name, best first; the first that has a value is shown. */
  readonly subtitleFields: readonly string[]
  readonly fields: readonly ModuleField[]
  /** The states that a record goes through, where it has any. */
  readonly states?: ModuleStates
  /**
   * What the service works out from what is written: totals, display names, counters. Pure. Receives the record as it
   * would be after the write, defaults included, and as it was before (undefined on creation); returns the fields that
   * it sets. Throws a catalogued failure where the values do not fit together. Transitions, times of states and locked
   * fields are not its business: `defineModule` adds them.
   */
  readonly derive?: Derive
  /** What `search` finds a record by beside its searchable fields: values inside of lists. Pure. */
  readonly alsoFoundBy?: (record: ModuleValues) => readonly string[]
  /** Fields that say why a record was archived: they become empty when it is restored. */
  readonly clearedOnRestore?: readonly string[]
  /** Typed links to records of other modules, beside the references among the fields. */
  readonly relationships: readonly ModuleRelationship[]
}

export type Derive = (after: ModuleValues, before: ModuleValues | undefined, moment: Moment) => ModuleValues

/** A field that has no value is null or absent: both mean the same. */
export type ModuleValues = Readonly<Record<string, unknown>>

export interface Moment {
  /** ISO 8601. */
  readonly now: string
  /** The user who writes, or null for a credential that acts without one. */
  readonly userId: string | null
}

export interface ModuleField {
  readonly fieldKey: string
  readonly label: string
  /** What it means, its unit and its limits, for the contract. */
  readonly description: string
  readonly dataType: DataTypeKey
  /** A value as it looks on the wire. */
  readonly example: unknown
  readonly required?: true
  /** Among the live records of an organisation. */
  readonly unique?: true
  /** Fast to filter and sort by. */
  readonly indexed?: true
  /** Found by `search`. */
  readonly searchable?: true
  /** Set by `derive`, or by the service (autoNumber); refused in a body. */
  readonly readOnly?: true
  /** Of a read-only field that shows the first of a list: the list, which imports read it into. */
  readonly readInto?: string
  /** The states in which its value is final: a write that begins and ends in them cannot change it. */
  readonly lockedIn?: readonly string[]
  /** What a creation without it holds. */
  readonly default?: unknown
  /** Of `select` and `multiSelect`. */
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  readonly minLength?: number
  readonly maxLength?: number
  /** RE2 syntax. */
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  /** Digits after the point, of `decimal`. */
  readonly scale?: number
  /**
   * Of `json`: the shape of the value. Every property in it has a description and an example. A property that is
   * `readOnly` there is always in answers; a body may repeat it, and what it says is replaced.
   */
  readonly schema?: TSchema
  /** Of `reference`: the key of the module that it points to. */
  readonly references?: string
}

export interface ModuleStates {
  /** The `select` field that holds the state. */
  readonly field: string
  readonly initial: string
  /** From each state, where it may go. A state that is not a key here is final. Staying is always allowed. */
  readonly transitions: Readonly<Record<string, readonly string[]>>
  /** States besides `initial` in which a record can be created, as imports do. */
  readonly createdIn?: readonly string[]
  /** The dateTime fields that tell when a record came into a state, by field key. */
  readonly times?: Readonly<Record<string, StateTime>>
}

export interface StateTime {
  /** Set when the record comes into one of these from another. */
  readonly entering: readonly string[]
  /** Without a value while the record is in one of these: it was reopened. */
  readonly clearedIn?: readonly string[]
}

export interface ModuleRelationship {
  /** `<from>_<what>`, snake_case, unique among all modules. */
  readonly relationshipKey: string
  readonly label: string
  /** The same read from the other end. */
  readonly inverseLabel: string
  readonly to: string
  readonly cardinality: 'one-to-many' | 'many-to-many'
}

/** A descriptor whose `derive` also keeps to its states: the one function that every write of a record goes through. */
export type Module = ModuleDescriptor & { readonly derive: Derive }

/**
 * Makes a module of its descriptor. Its `derive` throws `state_transition_invalid` and `field_locked` (409) beside what
 * the descriptor's own throws, and sets the times of states beside what that sets.
 */
export function defineModule(descriptor: ModuleDescriptor): Module {
  const derive: Derive = (after, before, moment) => {
    const { states } = descriptor
    requireTransition(states, after, before)
    requireUnlocked(descriptor, after, before)
    // Without a state it is in the first; what a descriptor derives may rely on there being one.
    const stated = states ? { [states.field]: stateOf(states, after) } : {}
    const worked = { ...stated, ...descriptor.derive?.({ ...after, ...stated }, before, moment) }
    return { ...worked, ...timesOfStates(states, { ...after, ...worked }, before, moment.now) }
  }
  return { ...descriptor, derive }
}
