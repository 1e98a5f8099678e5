import type { ModelCaller, ModelRecord } from './world.ts'

export type Placement = Pick<ModelRecord, 'ownerUserId' | 'dataRoleId' | 'locationId'>

/** The record envelope of data.md, rule by rule, of a record that is live or archived. */
export function sees(caller: ModelCaller, record: ModelRecord): boolean {
  const participates = caller.userId !== null && record.participants.includes(caller.userId)
  return participates || mayPlace(caller, record)
}

/** Rules 1, 2, 3 and 5: where the caller may put a record, and take it from. Taking part (rule 4) gives no such right. */
export function mayPlace(caller: ModelCaller, { ownerUserId, dataRoleId, locationId }: Placement): boolean {
  if (caller.unrestricted) return true
  if (ownerUserId === null && dataRoleId === null) return true
  if (ownerUserId !== null) return ownerUserId === caller.userId
  if (!caller.dataRoleIds.includes(dataRoleId!)) return false
  return locationId === null || caller.locationIds === 'all' || caller.locationIds.includes(locationId)
}
