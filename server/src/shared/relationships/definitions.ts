import type { AccessProfile, ObjectAccess } from '../access/permissions.ts'
import type { RelationshipDefinition } from '../catalogue/relationships.ts'

/** A relationship as a caller knows it. One with an end in an object that the caller may not read does not exist for it. */
export interface Relationship {
  readonly definition: RelationshipDefinition
  readonly from: ObjectAccess
  readonly to: ObjectAccess
}

export function relationshipsOf(profile: AccessProfile): Relationship[] {
  return [...profile.model.relationships.values()].flatMap((definition) => known(profile, definition) ?? [])
}

export function relationshipNamed(profile: AccessProfile, key: string): Relationship | undefined {
  const definition = profile.model.relationships.get(key)
  return definition && known(profile, definition)
}

function known(profile: AccessProfile, definition: RelationshipDefinition): Relationship | undefined {
  const from = profile.byObjectId.get(definition.fromObjectId)
  const to = profile.byObjectId.get(definition.toObjectId)
  return from && to && { definition, from, to }
}

/** A relationship followed from the records of one object to those at its other end. */
export interface Hop {
  /** What it was called; answers call it that, too. */
  readonly name: string
  readonly definition: RelationshipDefinition
  /** From `to` back to `from`? */
  readonly inverse: boolean
  /** The object that it leads to. */
  readonly access: ObjectAccess
}

const shape = /^(?:(forward|inverse):)?([a-z][a-z0-9_-]*)$/

/**
 * The hop that a name in `related` or `expand` means. A key alone leads to the other end; where both ends are the same
 * object it leads forward, and `inverse:<key>` leads back. `forward:<key>` is for a relationship that is called as a field.
 */
export function hopNamed(name: unknown, { object }: ObjectAccess, profile: AccessProfile): Hop | undefined {
  const [, direction, key = ''] = (typeof name === 'string' && shape.exec(name)) || []
  const relationship = relationshipNamed(profile, key)
  if (!relationship) return undefined
  const { definition, from, to } = relationship
  const leads = (wanted: string, near: ObjectAccess) =>
    near.object.objectId === object.objectId && (direction === undefined || direction === wanted)
  if (leads('forward', from)) return { name: name as string, definition, inverse: false, access: to }
  if (leads('inverse', to)) return { name: name as string, definition, inverse: true, access: from }
  return undefined
}

/** Every hop from the records of an object. */
export function hopsFrom({ object }: ObjectAccess, profile: AccessProfile): Hop[] {
  return relationshipsOf(profile).flatMap(({ definition, from, to }) => {
    const { relationshipKey } = definition
    const forward = { name: relationshipKey, definition, inverse: false, access: to }
    const inverse = { name: `inverse:${relationshipKey}`, definition, inverse: true, access: from }
    return [
      ...(from.object.objectId === object.objectId ? [forward] : []),
      ...(to.object.objectId === object.objectId ? [inverse] : []),
    ]
  })
}

/** The columns of a link that hold the record at hand and the one that the hop leads to. */
export function columnsOfHop({ inverse }: Hop): { readonly near: string; readonly far: string } {
  return inverse ? { near: 'to_record_id', far: 'from_record_id' } : { near: 'from_record_id', far: 'to_record_id' }
}
