import { randomBytes } from 'node:crypto'
import { fail } from '../../../kernel/errors.ts'
import { uuidv7 } from '../../../kernel/ids.ts'
import type { Operation, Reply } from '../../../kernel/operation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { pageOf } from '../../../shared/cursors.ts'
import { asOwner } from '../../../shared/database/as-owner.ts'
import { brokenConstraint } from '../../../shared/database/failures.ts'
import { TablesInUse } from '../../../shared/modelling/lock-tables.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const base = '/v1/platform/applications'
const one = `${base}/{saasAppId}`
const etag = { ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' } }
const common = { area: 'Applications', credentials: ['bld'], mcp: false } as const
const reading = { ...common, scope: 'applications.read', rateClass: 'read', transaction: 'read' } as const
const writing = { ...common, scope: 'applications.manage', rateClass: 'write', transaction: 'write' } as const

const list = platformOperation({
  ...reading,
  id: 'developerPlatformApplicationsList',
  method: 'GET',
  path: base,
  summary: 'List the applications of the account, by key.',
  description: 'Those in use; with `archived=true` those that are archived.',
  params: schema.NoParams,
  query: schema.ApplicationQuery,
  responses: { 200: schema.ApplicationPage },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, caller, cursors }, { query }) {
    const wanted = { accountId: caller.accountId, archived: query.archived ?? false }
    const identity = ['applications', wanted]
    const { rows, nextCursor } = await pageOf(
      cursors,
      identity,
      query,
      (after, limit) => store.findApplicationsOf(tx, wanted, after?.[0] ?? null, limit),
      ({ appKey }) => [appKey],
    )
    return { status: 200, body: { items: rows, nextCursor } }
  },
})

const create = platformOperation({
  ...writing,
  id: 'developerPlatformApplicationsCreate',
  method: 'POST',
  path: base,
  summary: 'Create an application.',
  description:
    'It begins with the native modules and without a model of its own: edit its draft and publish it. `appKey` is unique within the account.',
  params: schema.NoParams,
  body: schema.CreateBody,
  responses: { 201: schema.Application },
  responseHeaders: {
    ...etag,
    Location: { description: 'The address of the application.', example: '/v1/platform/applications/…' },
  },
  errors: ['application_key_taken', 'model_busy'],

  async handler(context, { body }) {
    const { tx, caller, now, modelling } = context
    const { appKey, name, description = '' } = body
    const saasAppId = uuidv7(now)
    const schemaName = `app_${randomBytes(6).toString('hex')}`
    const application = { appId: saasAppId, accountId: caller.accountId, appKey, name, description, schemaName }
    try {
      await asOwner(tx, () => store.insertApplication(tx, application, modelling.nativeObjects))
    } catch (error) {
      if (error instanceof TablesInUse)
        throw fail('model_busy', { message: 'Tables are in use for the moment. Try again.', cause: error })
      if (!brokenConstraint(error, 'unique')?.includes('app_key')) throw error
      throw fail('application_key_taken', { field: 'appKey', cause: error })
    }
    const after = await applicationOf(context, saasAppId)
    await audit(context, 'application.created', null, after)
    return { ...answer(after), status: 201, headers: { ...answer(after).headers, location: `${base}/${saasAppId}` } }
  },
})

const get = platformOperation({
  ...reading,
  id: 'developerPlatformApplicationsGet',
  method: 'GET',
  path: one,
  summary: 'Read an application.',
  description: 'An application of another account answers as one that does not exist.',
  params: schema.ApplicationParams,
  responses: { 200: schema.Application },
  responseHeaders: etag,
  errors: [],

  async handler(context, { params }) {
    return answer(await applicationOf(context, params.saasAppId))
  },
})

const update = platformOperation({
  ...writing,
  id: 'developerPlatformApplicationsUpdate',
  method: 'PATCH',
  path: one,
  summary: 'Change name or description of an application, or restore it.',
  description:
    'What the body does not name stays, and a change that changes nothing keeps the revision. Once restored, the credentials of its organizations hold again.',
  params: schema.ApplicationParams,
  body: schema.UpdateBody,
  ifMatch: true,
  responses: { 200: schema.Application },
  responseHeaders: etag,
  errors: ['revision_conflict'],

  async handler(context, { params, body, ifMatch }) {
    const before = await lockedApplication(context, params.saasAppId)
    requireRevision(before.revision, body.expectedRevision, ifMatch)
    const { name = before.name, description = before.description } = body
    const archived = body.archived ?? before.archivedAt !== null
    return answer(await change(context, before, { name, description, archived }))
  },
})

const archive = platformOperation({
  ...writing,
  id: 'developerPlatformApplicationsArchive',
  method: 'DELETE',
  path: one,
  summary: 'Archive an application.',
  description:
    'Nothing of it is deleted. Every credential of its organizations is refused with `application_archived` from the next request on, until PATCH with `archived: false` restores it. Archiving it again changes nothing.',
  params: schema.ApplicationParams,
  query: schema.RevisionQuery,
  ifMatch: true,
  responses: { 200: schema.Application },
  responseHeaders: etag,
  errors: ['revision_conflict'],

  async handler(context, { params, query, ifMatch }) {
    const before = await lockedApplication(context, params.saasAppId)
    requireRevision(before.revision, query.expectedRevision, ifMatch)
    return answer(await change(context, before, { ...before, archived: true }))
  },
})

async function change(
  context: PlatformContext,
  before: store.ApplicationRow,
  wanted: Pick<store.ApplicationRow, 'name' | 'description'> & { readonly archived: boolean },
): Promise<store.ApplicationRow> {
  const { tx, caller, now } = context
  const { name, description, archived } = wanted
  const wasArchived = before.archivedAt !== null
  if (name === before.name && description === before.description && archived === wasArchived) return before
  const { saasAppId } = before
  const archivedAt = archived ? (before.archivedAt ?? new Date(now).toISOString()) : null
  await store.updateApplication(tx, caller.accountId, { saasAppId, name, description, archivedAt })
  if (archived !== wasArchived) await store.bumpApplication(tx, saasAppId)
  const after = await applicationOf(context, saasAppId)
  const changed = archived ? 'application.archived' : 'application.restored'
  await audit(context, archived === wasArchived ? 'application.updated' : changed, before, after)
  return after
}

/** Another account's has been refused when the transaction was bound; this one cannot be missing. */
async function applicationOf(
  { tx, caller }: Pick<PlatformContext, 'tx' | 'caller'>,
  saasAppId: string,
): Promise<store.ApplicationRow> {
  const application = await store.findApplication(tx, caller.accountId, saasAppId)
  if (!application) throw fail('application_not_found')
  return application
}

async function lockedApplication(context: PlatformContext, saasAppId: string): Promise<store.ApplicationRow> {
  await store.lockApplication(context.tx, context.caller.accountId, saasAppId)
  return applicationOf(context, saasAppId)
}

async function audit(
  context: PlatformContext,
  action: string,
  before: store.ApplicationRow | null,
  after: store.ApplicationRow,
): Promise<void> {
  const { saasAppId } = after
  await recordAudit(context, { action, target: { type: 'application', id: saasAppId }, saasAppId, before, after })
}

function answer(body: store.ApplicationRow): Reply {
  return { status: 200, body, headers: { etag: `"${body.revision}"` } }
}

export const applicationOperations: readonly Operation<PlatformContext>[] = [list, create, get, update, archive]
