import { fail } from '../../kernel/errors.ts'
import type { Operation } from '../../kernel/operation.ts'
import { resolveReferences } from '../../shared/access/references.ts'
import { recordAudit } from '../../shared/audit.ts'
import { pageOf } from '../../shared/cursors.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { credentialOf, requireConsistent } from './rules.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const base = '/v1/platform/organizations/{organizationId}/credentials'
const managing = {
  area: 'Credentials',
  method: 'POST',
  credentials: ['bld'],
  scope: 'credentials.manage',
  rateClass: 'write',
  transaction: 'write',
  // A secret must not pass through a model's context.
  mcp: false,
} as const

const list = platformOperation({
  id: 'developerPlatformCredentialsList',
  method: 'GET',
  path: base,
  area: 'Credentials',
  summary: 'List the live and draft credentials of an organization, newest first.',
  description: `With their last use, and without anything that opens something. Tokens and sessions of the organization's
users are not among them. Revoked and expired credentials stay in the list.`,
  credentials: ['bld'],
  scope: 'credentials.read',
  rateClass: 'read',
  transaction: 'read',
  mcp: false,
  params: schema.OrganizationParams,
  query: schema.ListQuery,
  responses: { 200: schema.CredentialList },
  errors: ['organization_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, cursors, now }, { params, query }) {
    const organizationId = params.organizationId.toLowerCase()
    const identity = ['credentials', organizationId, query.status ?? null]
    const wanted = { organizationId, status: query.status, now: new Date(now).toISOString() }
    const { rows, nextCursor } = await pageOf(
      cursors,
      identity,
      query,
      (after, limit) => store.findCredentials(tx, { ...wanted, after, limit }),
      ({ createdAt, keyId }) => [createdAt, keyId],
    )
    return { status: 200, body: { items: rows.map((row) => credentialOf(row, now)), nextCursor } }
  },
})

const issue = platformOperation({
  ...managing,
  id: 'developerPlatformCredentialsIssue',
  path: base,
  summary: 'Issue a credential and show its token once.',
  description: `\`live\` for servers, \`draft\` for page drafts only. Without an \`envelope\` a live credential sees the whole
organization; with one it may do what these DataRoles may do, at these locations. The token is in this answer and nowhere
else: what is kept can verify it and not show it. Repeating the request with its Idempotency-Key shows it again.`,
  confidential: true,
  params: schema.OrganizationParams,
  body: schema.IssueBody,
  responses: { 201: schema.IssuedCredential },
  errors: ['organization_not_found', 'application_archived', 'reference_not_found'],

  async handler(context, { params, body }) {
    const { tx, caller, mint, now } = context
    const { organizationId } = params
    requireConsistent(body, now)
    const envelope = body.envelope && (await knownEnvelope(context, organizationId, body.envelope))
    const { appId, archived } = await store.applicationOf(tx, organizationId)
    if (archived) throw fail('application_archived', { message: 'The application is archived.' })
    const { keyId, text, secretHash } = mint.token(body.kind)
    await store.insertCredential(tx, {
      organizationId,
      appId,
      kind: body.kind,
      keyId,
      secretHash,
      displayName: body.displayName,
      scopes: body.scopes,
      createdBy: caller.builderId,
      createdAt: new Date(now).toISOString(),
      expiresAt: body.expiresAt === undefined ? null : new Date(body.expiresAt).toISOString(),
      ...(envelope && { envelope }),
    })
    const after = await lockedCredential(context, organizationId, keyId)
    await recordChange(context, organizationId, 'issued', undefined, after)
    return { status: 201, body: { ...credentialOf(after, now), token: text } }
  },
})

const rotate = platformOperation({
  ...managing,
  id: 'developerPlatformCredentialsRotate',
  path: `${base}/{keyId}:rotate`,
  summary: 'Replace the secret of a credential and show the new token once.',
  description: `The key id, the scopes and the expiry stay. With \`overlapSeconds\` the old token works beside the new one
for so long; otherwise it ends at once, everywhere. There are never more than two: a second rotation ends the oldest. A
credential that is revoked or has expired cannot be rotated.`,
  confidential: true,
  params: schema.CredentialParams,
  body: schema.RotateBody,
  bodyOptional: true,
  responses: { 200: schema.IssuedCredential },
  errors: ['organization_not_found', 'credential_not_found', 'credential_ended'],

  async handler(context, { params, body }) {
    const { tx, mint, now } = context
    const { organizationId, keyId } = params
    const before = await lockedCredential(context, organizationId, keyId)
    if (credentialOf(before, now).status !== 'active') throw fail('credential_ended')
    const overlapMs = (body.overlapSeconds ?? 0) * 1000
    const { text, secretHash } = mint.token(before.kind, keyId)
    const after = await store.replaceSecret(tx, organizationId, keyId, {
      secretHash,
      rotatedAt: new Date(now).toISOString(),
      overlapsUntil: overlapMs > 0 ? new Date(now + overlapMs).toISOString() : null,
    })
    await store.bumpOrganization(tx, organizationId)
    await recordChange(context, organizationId, 'rotated', before, after)
    return { status: 200, body: { ...credentialOf(after, now), token: text } }
  },
})

const revoke = platformOperation({
  ...managing,
  id: 'developerPlatformCredentialsRevoke',
  path: `${base}/{keyId}:revoke`,
  summary: 'End a credential at once, everywhere.',
  description: `The next request with any of its tokens is refused, by every process. It cannot be undone. Revoking what is
revoked changes nothing and answers the same.`,
  params: schema.CredentialParams,
  responses: { 200: schema.Credential },
  errors: ['organization_not_found', 'credential_not_found'],

  async handler(context, { params }) {
    const { tx, now } = context
    const { organizationId, keyId } = params
    const before = await lockedCredential(context, organizationId, keyId)
    if (before.revokedAt !== null) return { status: 200, body: credentialOf(before, now) }
    const after = await store.revoke(tx, organizationId, keyId, new Date(now).toISOString())
    await store.bumpOrganization(tx, organizationId)
    await recordChange(context, organizationId, 'revoked', before, after)
    return { status: 200, body: credentialOf(after, now) }
  },
})

/** The envelope, by the ids of roles and locations that are the organisation's. */
async function knownEnvelope({ tx }: PlatformContext, organizationId: string, ordered: schema.OrderedEnvelope) {
  const { dataRoleIds, locations } = await resolveReferences(tx, organizationId, ordered, 'envelope.')
  if (dataRoleIds === undefined) {
    const message = 'Send dataRoleIds or dataRoleKeys; the list may be empty.'
    throw fail('validation_failed', { field: 'envelope.dataRoleIds', message })
  }
  return { dataRoleIds, locationIds: locations! }
}

async function lockedCredential({ tx }: PlatformContext, organizationId: string, keyId: string) {
  const row = await store.lockCredential(tx, organizationId, keyId)
  if (!row) throw fail('credential_not_found')
  return row
}

async function recordChange(
  context: PlatformContext,
  organizationId: string,
  what: 'issued' | 'rotated' | 'revoked',
  before: store.CredentialRow | undefined,
  after: store.CredentialRow,
): Promise<void> {
  await recordAudit(context, {
    action: `credential.${what}`,
    target: { type: 'credential', id: after.keyId },
    saasAppId: after.saasAppId,
    organizationId,
    before: before && credentialOf(before, context.now),
    after: credentialOf(after, context.now),
  })
}

export const credentialOperations: readonly Operation<PlatformContext>[] = [list, issue, rotate, revoke]
