import type { Actor } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { brokenConstraint } from '../../shared/database/failures.ts'
import { emitLifecycle } from '../../shared/outbox/lifecycle.ts'
import type { OrganizationRow } from './organization-store.ts'
import { losesOwner, type UserFacts, userEvents } from './rules.ts'
import { insertUser, type NewUser } from './store.ts'
import * as users from './user-store.ts'

/** Users and their memberships change here, whoever changes them, with the facts that follow. */
interface Occasion {
  readonly tx: Tx
  readonly now: number
  readonly actor: Actor
}

type Organization = Pick<OrganizationRow, 'organizationId' | 'appId'>

/** Makes a user with its membership. The organization must be locked. Throws `email_taken` and `reference_not_found`. */
export async function createMember(
  occasion: Occasion,
  organization: Organization,
  member: Omit<NewUser, 'organizationId'>,
): Promise<users.UserRow> {
  const { organizationId, appId: saasAppId } = organization
  await orRefused(() => insertUser(occasion.tx, { organizationId, ...member }))
  const user = (await users.findUser(occasion.tx, organizationId, member.userId))!
  await emitLifecycle(occasion, { eventKey: 'user.created', saasAppId, data: userData(user) })
  await emitLifecycle(occasion, { eventKey: 'membership.created', saasAppId, data: membershipData(user) })
  return user
}

/**
 * Makes the user what `after` says. The organization must be locked. Throws `email_taken`, `reference_not_found`,
 * and `last_owner` where nobody active would own the organization any more.
 */
export async function changeMember(
  occasion: Occasion,
  organization: Organization,
  user: users.UserRow,
  after: UserFacts,
): Promise<users.UserRow> {
  const { tx, now } = occasion
  const { organizationId, appId: saasAppId } = organization
  const before = factsOf(user)
  if (losesOwner(before, after) && !(await users.hasOtherOwner(tx, organizationId, user.userId))) {
    throw fail('last_owner')
  }
  await orRefused(() => users.updateUser(tx, user, before, after))
  if (before.email !== after.email || after.status === 'inactive') {
    await users.deletePasswordResets(tx, organizationId, user.userId)
  }
  if (before.status === 'inactive' && after.status === 'active') {
    await users.endSessions(tx, organizationId, user.userId, now)
  }
  const changed = (await users.findUser(tx, organizationId, user.userId))!
  for (const eventKey of userEvents(before, after)) {
    if (eventKey === 'membership.role_changed') {
      await emitLifecycle(occasion, { eventKey, saasAppId, data: membershipData(changed) })
    } else await emitLifecycle(occasion, { eventKey, saasAppId, data: userData(changed) })
  }
  return changed
}

/** What rules look at. */
export function factsOf(user: users.UserRow): UserFacts {
  return { ...user, dataRoleIds: user.dataRoles.map(({ dataRoleId }) => dataRoleId) }
}

function userData({ organizationId, userId, email, displayName, userTypeKey, isOwner, status }: users.UserRow) {
  return { organizationId, userId, email, displayName, userTypeKey, isOwner, status }
}

function membershipData({ organizationId, userId, userTypeKey, dataRoles }: users.UserRow) {
  return { organizationId, userId, userTypeKey, dataRoles: dataRoles.map(({ dataRoleId }) => ({ dataRoleId })) }
}

async function orRefused(write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (brokenConstraint(error, 'unique') === 'tenant_user_email') {
      throw fail('email_taken', { field: 'email', cause: error })
    }
    // A release has removed the role since it was looked for.
    if (brokenConstraint(error, 'reference')?.startsWith('membership_data_role')) {
      throw fail('reference_not_found', { field: 'dataRoleIds', cause: error })
    }
    throw error
  }
}
