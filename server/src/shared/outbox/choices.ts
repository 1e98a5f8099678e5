import { type EventHead, linkOf, type Standing } from './disclosure.ts'

/** One of the events that a subscription asks for. */
export interface EventChoice {
  readonly eventKey: string
  readonly eventVersion: string
  /** Only about records of these objects, or links of such; absent: of any. */
  readonly objectKeys?: string[]
}

/** What a subscription asks for: the objects of each type of event, or undefined for any. */
export type Wanted = ReadonlyMap<string, ReadonlySet<string> | undefined>

type Typed = Pick<EventChoice, 'eventKey' | 'eventVersion'>
const typeOf = ({ eventKey, eventVersion }: Typed) => `${eventKey} ${eventVersion}`

export function wantedOf(choices: readonly EventChoice[]): Wanted {
  return new Map(choices.map((choice) => [typeOf(choice), choice.objectKeys && new Set(choice.objectKeys)]))
}

/** Does it ask for events of this type, about whatever? */
export function wantsType(wanted: Wanted, event: Typed): boolean {
  return wanted.has(typeOf(event))
}

/** Of events whose type it asks for: is this one about what it asks for? Objects that the credential may not read are none. */
export function wantsSubject(wanted: Wanted, event: EventHead & Typed, { profile }: Standing): boolean {
  const objectKeys = wanted.get(typeOf(event))
  if (!objectKeys) return true
  const link = linkOf(event)
  if (link) return objectKeys.has(link.fromObjectKey) || objectKeys.has(link.toObjectKey)
  const access = event.objectId === null ? undefined : profile.byObjectId.get(event.objectId)
  return access !== undefined && objectKeys.has(access.object.objectKey)
}
