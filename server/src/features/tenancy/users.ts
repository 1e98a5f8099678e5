import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Operation, Reply } from '../../kernel/operation.ts'
import { resolveReferences } from '../../shared/access/references.ts'
import { recordAudit } from '../../shared/audit.ts'
import { pageOf } from '../../shared/cursors.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { requireRevision } from '../../shared/records/input.ts'
import { changeMember, createMember, factsOf } from './members.ts'
import { lockOrganization, type OrganizationRow } from './organization-store.ts'
import { changesUser } from './rules.ts'
import { OrganizationParams } from './schema.ts'
import * as schema from './user-schema.ts'
import { findUser, findUsers, type UserRow } from './user-store.ts'

const base = '/v1/platform/organizations/{organizationId}/users'
const etag = { ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' } }
const common = { area: 'Users', credentials: ['bld'], mcp: false } as const
const reading = { ...common, scope: 'organizations.read', rateClass: 'read', transaction: 'read' } as const
const writing = { ...common, scope: 'organizations.manage', rateClass: 'write', transaction: 'write' } as const

const list = platformOperation({
  ...reading,
  id: 'developerPlatformUsersList',
  method: 'GET',
  path: base,
  summary: 'List the users of a customer organization, by name.',
  description: '`search` looks into names and email addresses.',
  params: OrganizationParams,
  query: schema.UserQuery,
  responses: { 200: schema.UserPage },
  errors: ['organization_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, cursors }, { params, query }) {
    const { status, search } = query
    const wanted = { organizationId: params.organizationId.toLowerCase(), status, search }
    const { rows, nextCursor } = await pageOf(
      cursors,
      ['users', wanted],
      query,
      (after, limit) => findUsers(tx, wanted, after, limit),
      ({ sortName, userId }) => [sortName, userId],
    )
    return { status: 200, body: { items: rows.map(({ sortName: _, ...user }) => user), nextCursor } }
  },
})

const create = platformOperation({
  ...writing,
  id: 'developerPlatformUsersCreate',
  method: 'POST',
  path: base,
  summary: 'Create a user in a customer organization.',
  description:
    'The user has no password yet and gets no mail: to let somebody choose one right away, send an invitation instead. Without DataRoles and locations the user sees what belongs to the whole organization.',
  params: OrganizationParams,
  body: schema.UserCreateBody,
  responses: { 201: schema.User },
  responseHeaders: {
    ...etag,
    Location: { description: 'The address of the user.', example: '/v1/platform/organizations/…/users/…' },
  },
  errors: ['organization_not_found', 'email_taken', 'reference_not_found'],

  async handler(context, { params, body }) {
    const { tx, now, caller } = context
    const organization = await lockOrganization(context.tx, params.organizationId)
    const { dataRoleIds = [], locations = [] } = await resolveReferences(tx, organization.organizationId, body)
    const { email, displayName, userTypeKey = 'member', isOwner = false } = body
    const who = { userId: uuidv7(now), email, displayName, passwordHash: null, userTypeKey, isOwner }
    const occasion = { tx, now, actor: caller.actor }
    const user = await createMember(occasion, organization, { ...who, dataRoleIds, locationIds: locations })
    await recordAudit(context, { action: 'user.created', ...targetOf(organization, user), before: null, after: user })
    const location = `/v1/platform/organizations/${user.organizationId}/users/${user.userId}`
    return { status: 201, body: user, headers: { etag: `"${user.revision}"`, location } }
  },
})

const get = platformOperation({
  ...reading,
  id: 'developerPlatformUsersGet',
  method: 'GET',
  path: `${base}/{userId}`,
  summary: 'Read a user of a customer organization.',
  description: 'With the membership: type, ownership, DataRoles and locations.',
  params: schema.UserParams,
  responses: { 200: schema.User },
  responseHeaders: etag,
  errors: ['organization_not_found', 'user_not_found'],

  async handler({ tx }, { params }) {
    const user = await findUser(tx, params.organizationId, params.userId)
    if (!user) throw fail('user_not_found')
    return answer(user)
  },
})

const update = platformOperation({
  ...writing,
  id: 'developerPlatformUsersUpdate',
  method: 'PATCH',
  path: `${base}/{userId}`,
  summary: 'Change, deactivate or reactivate a user of a customer organization.',
  description:
    'What the body does not name stays; DataRoles and locations are replaced whole. A change holds from the next request of the user on, in every process. With the status `inactive` its sessions and delegated credentials are refused, and with `active` it signs in anew. The last active owner of an organization stays one.',
  params: schema.UserParams,
  body: schema.UserUpdateBody,
  ifMatch: true,
  responses: { 200: schema.User },
  responseHeaders: etag,
  errors: [
    'organization_not_found',
    'user_not_found',
    'revision_conflict',
    'email_taken',
    'last_owner',
    'reference_not_found',
  ],

  async handler(context, { params, body, ifMatch }) {
    const { tx, now, caller } = context
    const organization = await lockOrganization(context.tx, params.organizationId)
    const user = await findUser(tx, organization.organizationId, params.userId)
    if (!user) throw fail('user_not_found')
    requireRevision(user.revision, body.expectedRevision, ifMatch)
    const before = factsOf(user)
    const { email = before.email, displayName = before.displayName, status = before.status } = body
    const { userTypeKey = before.userTypeKey, isOwner = before.isOwner } = body
    const references = await resolveReferences(tx, organization.organizationId, body)
    const { dataRoleIds = before.dataRoleIds, locations = before.locations } = references
    const after = { email, displayName, status, userTypeKey, isOwner, dataRoleIds, locations }
    if (!changesUser(before, after)) return answer(user)
    const changed = await changeMember({ tx, now, actor: caller.actor }, organization, user, after)
    const action = actionOf(before.status, after.status)
    await recordAudit(context, { action, ...targetOf(organization, user), before: user, after: changed })
    return answer(changed)
  },
})

function actionOf(before: string, after: string): string {
  if (before === after) return 'user.updated'
  return after === 'active' ? 'user.reactivated' : 'user.deactivated'
}

function targetOf({ organizationId, appId }: OrganizationRow, { userId }: UserRow) {
  return { target: { type: 'user', id: userId }, saasAppId: appId, organizationId }
}

function answer(user: UserRow): Reply {
  return { status: 200, body: user, headers: { etag: `"${user.revision}"` } }
}

export const userOperations: readonly Operation<PlatformContext>[] = [list, create, get, update]
