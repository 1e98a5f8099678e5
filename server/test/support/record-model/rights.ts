/** What roles may do, as a model document says it, and what that comes to for somebody who has several. */
export interface RoleRights {
  readonly read: boolean
  readonly create: boolean
  readonly update: boolean
  readonly archive: boolean
  /** By field key; a field that is not named follows the object. */
  readonly fields: Readonly<Record<string, { readonly read: boolean; readonly write: boolean }>>
}

export interface Rights {
  readonly create: boolean
  readonly update: boolean
  readonly archive: boolean
  readonly readable: readonly string[]
  readonly writable: readonly string[]
}

/**
 * The union of what the roles give; undefined where none of them reads the object, which then does not exist. A role that
 * does not read an object gives nothing on it. Writing a field takes one role that reads it, writes it and may create or
 * update.
 */
export function rightsOf(roles: readonly RoleRights[], fieldKeys: readonly string[]): Rights | undefined {
  const reading = roles.filter((role) => role.read)
  if (reading.length === 0) return undefined
  const reads = (role: RoleRights, key: string) => role.fields[key]?.read ?? true
  const writes = (role: RoleRights, key: string) =>
    reads(role, key) && (role.fields[key]?.write ?? true) && (role.create || role.update)
  return {
    create: reading.some((role) => role.create),
    update: reading.some((role) => role.update),
    archive: reading.some((role) => role.archive),
    readable: fieldKeys.filter((key) => reading.some((role) => reads(role, key))),
    writable: fieldKeys.filter((key) => reading.some((role) => writes(role, key))),
  }
}

export function allRights(fieldKeys: readonly string[]): Rights {
  return { create: true, update: true, archive: true, readable: fieldKeys, writable: fieldKeys }
}
