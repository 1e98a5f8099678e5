import { isDeepStrictEqual } from 'node:util'
import type { ModelDocument, ObjectDocument, RoleDocument } from './document.ts'
import { normalised, own } from './normalise.ts'
import { fieldPath } from './problems.ts'

/** One thing as it was, as it is in the draft, and as it is published; undefined where it is not there. */
interface Versions<T> {
  readonly base: T | undefined
  readonly ours: T | undefined
  readonly theirs: T | undefined
}

/**
 * Merges a draft with what was published since it was begun: `base` is the release that it was begun from, `theirs` the
 * newest one. The parts are the properties of an object, each of its fields, the order of its fields, a relationship, a
 * location, the label and actions of a role, and the rights of a role to an object. What only one side changes is as that
 * side has it. `conflicts` are the paths of what both change, and differently; then the document is not to be used.
 */
export function rebase(
  base: ModelDocument,
  ours: ModelDocument,
  theirs: ModelDocument,
): { readonly document: ModelDocument; readonly conflicts: readonly string[] } {
  const doubled = doubledKeys(ours)
  if (doubled.length > 0) return { document: ours, conflicts: doubled }
  const all = { base: normalised(base), ours: normalised(ours), theirs: normalised(theirs) }
  const merge = new Merge()
  const document = {
    objects: merge.objects(select(all, ({ objects }) => objects)),
    relationships: merge.each(
      'relationships',
      select(all, ({ relationships }) => relationships),
    ),
    roles: merge.each(
      'roles',
      select(all, ({ roles }) => roles),
      (path, role) => merge.role(path, role),
    ),
    locations: merge.each(
      'locations',
      select(all, ({ locations }) => locations),
    ),
  }
  return { document: normalised(document), conflicts: [...merge.conflicts] }
}

/** A draft may be wrong, and name a thing twice. There is no telling which of them is meant. */
function doubledKeys({ objects }: ModelDocument): string[] {
  const twice = (keys: readonly string[]) => keys.filter((key, index) => keys.indexOf(key) !== index)
  return [
    ...new Set([
      ...twice(objects.map(({ objectKey }) => objectKey)).map((key) => `objects/${key}`),
      ...objects.flatMap(({ objectKey, fields }) =>
        twice(fields.map(({ fieldKey }) => fieldKey)).map((key) => fieldPath(objectKey, key)),
      ),
    ]),
  ]
}

class Merge {
  readonly conflicts = new Set<string>()

  /** Of what cannot be taken apart any further. */
  whole<T>(path: string, { base, ours, theirs }: Versions<T>): T | undefined {
    if (isDeepStrictEqual(base, theirs) || isDeepStrictEqual(ours, theirs)) return ours
    if (!isDeepStrictEqual(base, ours)) this.conflicts.add(path)
    return theirs
  }

  each<T>(
    path: string,
    all: Versions<Readonly<Record<string, T>>>,
    one: (path: string, versions: Versions<T>) => T | undefined = (at, versions) => this.whole(at, versions),
  ): Record<string, T> {
    const keys = new Set([...Object.keys(all.theirs ?? {}), ...Object.keys(all.ours ?? {})])
    const merged = [...keys].map((key) => {
      return [
        key,
        one(
          `${path}/${key}`,
          select(all, (record) => own(record, key)),
        ),
      ] as const
    })
    return Object.fromEntries(merged.filter((entry): entry is readonly [string, T & {}] => entry[1] !== undefined))
  }

  role(path: string, versions: Versions<RoleDocument>): RoleDocument | undefined {
    if (!versions.ours || !versions.theirs) return this.whole(path, versions)
    const properties = this.whole(
      path,
      select(versions, ({ objects: _, ...rest }) => rest),
    )!
    const rights = select(versions, ({ objects }) => objects)
    return { ...properties, objects: this.each(`${path}/objects`, rights) }
  }

  objects(all: Versions<readonly ObjectDocument[]>): ObjectDocument[] {
    const keyOf = ({ objectKey }: ObjectDocument) => objectKey
    return this.list('objects', all, keyOf, (path, object) => this.object(path, object)).items
  }

  object(path: string, versions: Versions<ObjectDocument>): ObjectDocument | undefined {
    if (!versions.ours || !versions.theirs) return this.whole(path, versions)
    const properties = this.whole(
      path,
      select(versions, ({ fields: _, ...rest }) => rest),
    )!
    const fields = this.list(
      `${path}/fields`,
      select(versions, (object) => object.fields),
      ({ fieldKey }) => fieldKey,
    )
    // The order of its fields belongs to the object.
    if (fields.isOrderDisputed) this.conflicts.add(path)
    return { ...properties, fields: fields.items }
  }

  list<T>(
    path: string,
    all: Versions<readonly T[]>,
    keyOf: (item: T) => string,
    one?: (path: string, versions: Versions<T>) => T | undefined,
  ): { readonly items: T[]; readonly isOrderDisputed: boolean } {
    const byKey = (items: readonly T[]) => Object.fromEntries(items.map((item) => [keyOf(item), item]))
    const merged = this.each(path, select(all, byKey), one)
    const { order, isDisputed } = mergedOrder(select(all, (items) => items.map(keyOf)))
    return { items: order.flatMap((key) => own(merged, key) ?? []), isOrderDisputed: isDisputed }
  }
}

/** Whoever has moved what was there before says the order; what the other has added stands behind what it stood behind. */
function mergedOrder({ base = [], ours = [], theirs = [] }: Versions<readonly string[]>) {
  const among = (keys: readonly string[], others: readonly string[]) => {
    const known = new Set(others)
    return keys.filter((key) => known.has(key))
  }
  const agree = (a: readonly string[], b: readonly string[]) => isDeepStrictEqual(among(a, b), among(b, a))
  const [weMoved, theyMoved] = [!agree(base, ours), !agree(base, theirs)]
  const [first, second] = theyMoved && !weMoved ? [theirs, ours] : [ours, theirs]
  const order = [...first]
  const placed = new Set(first)
  for (const [index, key] of second.entries()) {
    if (placed.has(key)) continue
    order.splice(index === 0 ? 0 : order.indexOf(second[index - 1]!) + 1, 0, key)
    placed.add(key)
  }
  return { order, isDisputed: weMoved && theyMoved && !agree(ours, theirs) }
}

function select<T, U>({ base, ours, theirs }: Versions<T>, of: (version: T) => U | undefined): Versions<U> {
  const one = (version: T | undefined) => (version === undefined ? undefined : of(version))
  return { base: one(base), ours: one(ours), theirs: one(theirs) }
}
