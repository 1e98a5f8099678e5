import { isDeepStrictEqual } from 'node:util'
import type { FieldDocument, ModelDocument, ObjectDocument, RoleDocument } from './document.ts'
import { normalised, own } from './normalise.ts'
import { fieldPath } from './problems.ts'

/** What leads from one model to another: the diff that people read is the plan that is carried out. */
const changeVerbs = ['added', 'changed', 'archived', 'restored', 'removed'] as const
type Part = 'object' | 'field' | 'relationship' | 'role' | 'location'
type Verb = (typeof changeVerbs)[number]

type State = Readonly<Record<string, unknown>>

export interface Change {
  readonly part: Part
  readonly verb: Verb
  readonly path: string
  /** Of the object, of the field's object, or of the role, relationship or location. */
  readonly key: string
  readonly fieldKey?: string
  /** All of what is removed or added; of what changes, the properties that do. */
  readonly before: State | null
  readonly after: State | null
  /** Might a client that worked until now get other answers, or be refused? */
  readonly breaking: boolean
}

/** The changes that lead from `before` to `after`, in an order in which they can be carried out. */
export function changesBetween(before: ModelDocument, after: ModelDocument): Change[] {
  const [from, to] = [normalised(before), normalised(after)]
  const parts = (name: 'relationships' | 'roles' | 'locations', part: Part) =>
    changesOfParts(part, name, from[name] as Record<string, State>, to[name] as Record<string, State>)
  const objects = changesOfObjects(from.objects, to.objects)
  const others = [
    ...parts('relationships', 'relationship'),
    ...parts('roles', 'role'),
    ...parts('locations', 'location'),
  ]
  const isRemoval = ({ verb }: Change) => verb === 'removed'
  return [
    // What points to objects goes before them and comes after them; fields go before objects that they refer to.
    ...others.filter(isRemoval),
    ...objects.filter((change) => isRemoval(change) && change.part === 'field'),
    ...objects.filter((change) => isRemoval(change) && change.part === 'object'),
    ...objects.filter((change) => !isRemoval(change) && change.part === 'object'),
    ...objects.filter((change) => !isRemoval(change) && change.part === 'field'),
    ...others.filter((change) => !isRemoval(change)),
  ]
}

function changesOfObjects(from: readonly ObjectDocument[], to: readonly ObjectDocument[]): Change[] {
  const known = new Map(from.map((object) => [object.objectKey, object]))
  const wanted = new Set(to.map((object) => object.objectKey))
  const removed = from
    .filter(({ objectKey }) => !wanted.has(objectKey))
    .map((object) => whole('object', 'removed', `objects/${object.objectKey}`, object.objectKey, object))
  const rest = to.flatMap((object) => {
    const path = `objects/${object.objectKey}`
    const before = known.get(object.objectKey)
    return before ? changesOfObject(path, before, object) : [whole('object', 'added', path, object.objectKey, object)]
  })
  return [...removed, ...rest]
}

function changesOfObject(path: string, before: ObjectDocument, after: ObjectDocument): Change[] {
  const key = after.objectKey
  const properties = ({ fields: _, archived: __, ...rest }: ObjectDocument) => rest
  const common = ({ fields }: ObjectDocument, { fields: others }: ObjectDocument) => {
    const known = new Set(others.map((other) => other.fieldKey))
    return fields.map((field) => field.fieldKey).filter((name) => known.has(name))
  }
  const told = differences(
    { ...properties(before), fieldOrder: common(before, after) },
    { ...properties(after), fieldOrder: common(after, before) },
  )
  return [
    ...archivings('object', path, { key }, before, after),
    ...(told ? [{ part: 'object', verb: 'changed', path, key, ...told, breaking: false } as const] : []),
    ...changesOfFields(key, before.fields, after.fields),
  ]
}

function changesOfFields(objectKey: string, from: readonly FieldDocument[], to: readonly FieldDocument[]): Change[] {
  const known = new Map(from.map((field) => [field.fieldKey, field]))
  const wanted = new Set(to.map((field) => field.fieldKey))
  const at = (fieldKey: string) => ({ path: fieldPath(objectKey, fieldKey), key: objectKey, fieldKey })
  const removed = from
    .filter(({ fieldKey }) => !wanted.has(fieldKey))
    .map((field) => ({ ...whole('field', 'removed', '', '', field), ...at(field.fieldKey) }))
  const rest = to.flatMap((field): Change[] => {
    const place = at(field.fieldKey)
    const before = known.get(field.fieldKey)
    if (!before) return [{ ...whole('field', 'added', '', '', field), ...place, breaking: field.required === true }]
    const { archived: _, ...ofBefore } = before
    const { archived: __, ...ofAfter } = field
    const told = differences(ofBefore, ofAfter)
    return [
      ...archivings('field', place.path, place, before, field),
      ...(told
        ? [{ part: 'field', verb: 'changed', ...place, ...told, breaking: isBreaking(before, field) } as const]
        : []),
    ]
  })
  return [...removed, ...rest]
}

function archivings(
  part: 'object' | 'field',
  path: string,
  place: { readonly key: string; readonly fieldKey?: string },
  { archived: before = false }: { readonly archived?: boolean },
  { archived: after = false }: { readonly archived?: boolean },
): Change[] {
  if (before === after) return []
  const verb = after ? 'archived' : 'restored'
  return [{ part, verb, ...place, path, before: { archived: before }, after: { archived: after }, breaking: after }]
}

/** A limit that is new or another one counts as breaking; whether a pattern is wider than the last, nobody can tell. */
function isBreaking(before: FieldDocument, after: FieldDocument): boolean {
  const options = new Set(after.options?.map((option) => option.value))
  const limits = Object.entries(after.validation ?? {})
  return (
    before.dataType !== after.dataType ||
    before.references !== after.references ||
    (after.required === true && !before.required) ||
    (after.unique === true && !before.unique) ||
    (before.searchable === true && !after.searchable) ||
    (before.options ?? []).some((option) => !options.has(option.value)) ||
    limits.some(([name, limit]) => (before.validation as State | undefined)?.[name] !== limit)
  )
}

function changesOfParts(
  part: Part,
  name: string,
  from: Readonly<Record<string, State>>,
  to: Readonly<Record<string, State>>,
): Change[] {
  const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])].sort()
  return keys.flatMap((key): Change[] => {
    const path = `${name}/${key}`
    const [before, after] = [own(from, key), own(to, key)]
    if (!before) return [whole(part, 'added', path, key, after!)]
    if (!after) return [whole(part, 'removed', path, key, before)]
    const told = differences(before, after)
    const breaking = part === 'role' && losesRights(before as unknown as RoleDocument, after as unknown as RoleDocument)
    return told ? [{ part, verb: 'changed', path, key, ...told, breaking }] : []
  })
}

function losesRights(before: RoleDocument, after: RoleDocument): boolean {
  const actions = new Set(after.actions)
  const lost = Object.entries(before.objects).some(([objectKey, had]) => {
    const has = own(after.objects, objectKey)
    const narrowed = Object.entries(has?.fields ?? {}).some(([fieldKey, now]) => {
      const was = own(had.fields, fieldKey) ?? { read: true, write: true }
      return (was.read && !now.read) || (was.write && !now.write)
    })
    return narrowed || (['read', 'create', 'update', 'archive'] as const).some((right) => had[right] && !has?.[right])
  })
  return lost || (before.actions ?? []).some((action) => !actions.has(action))
}

function whole(part: Part, verb: 'added' | 'removed', path: string, key: string, state: object): Change {
  const removed = verb === 'removed'
  const told = state as State
  return { part, verb, path, key, before: removed ? told : null, after: removed ? null : told, breaking: removed }
}

/** The properties that differ; null stands for one that is absent. */
function differences(before: object, after: object): { before: State; after: State } | undefined {
  const [from, to] = [before as State, after as State]
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])].filter(
    (name) => !isDeepStrictEqual(from[name], to[name]),
  )
  if (names.length === 0) return undefined
  const of = (state: State) => Object.fromEntries(names.map((name) => [name, state[name] ?? null]))
  return { before: of(from), after: of(to) }
}

/** Every kind of change that there is. */
export const changeKinds = [
  ...(['object', 'field'] as const).flatMap((part) => changeVerbs.map((verb) => `${part}_${verb}` as const)),
  ...(['relationship', 'role', 'location'] as const).flatMap((part) =>
    (['added', 'changed', 'removed'] as const).map((verb) => `${part}_${verb}` as const),
  ),
]

/** A change as the API shows it and as a release keeps it. */
export interface ChangeView {
  readonly kind: (typeof changeKinds)[number]
  readonly path: string
  readonly before: State | null
  readonly after: State | null
  readonly breaking: boolean
  readonly rowsAtStake: number | null
}

export function changeView(change: Change & { readonly rowsAtStake: number | null }): ChangeView {
  const { part, verb, path, before, after, breaking, rowsAtStake } = change
  return { kind: `${part}_${verb}` as ChangeView['kind'], path, before, after, breaking, rowsAtStake }
}

/** `objects/deal/fields/amount` is `deal.amount` in sentences. */
export function nameOf(path: string): string {
  return path
    .split('/')
    .filter((_, index) => index % 2 === 1)
    .join('.')
}

/** The changes as people read them, a line each. */
export function summaryOfViews(changes: readonly ChangeView[]): string {
  if (changes.length === 0) return 'Nothing changes.'
  return changes
    .map((change) => `${sentenceOf(change)}${change.rowsAtStake ? ` (${change.rowsAtStake} rows at stake)` : ''}`)
    .join('\n')
}

function sentenceOf({ kind, path, before, after }: ChangeView): string {
  const [part, verb] = kind.split('_')
  if (verb !== 'changed') return `${part} ${nameOf(path)} ${verb}`
  const properties = Object.keys(after ?? {}).map((property) =>
    [before, after].some((state) => typeof state?.[property] === 'object' && state[property] !== null)
      ? property
      : `${property} ${JSON.stringify(before?.[property])} → ${JSON.stringify(after?.[property])}`,
  )
  return `${part} ${nameOf(path)} changed: ${properties.join(', ')}`
}
