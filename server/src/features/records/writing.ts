import type { Operation, Reply } from '../../kernel/operation.ts'
import { type Context, operation } from '../../shared/context.ts'
import { runBatch } from '../../shared/records/batch.ts'
import { findParticipants } from '../../shared/records/read-store.ts'
import { type RecordRow, viewOf } from '../../shared/records/record.ts'
import { type RecordScope, recordScope } from '../../shared/records/scope.ts'
import { RevisionBody, RevisionQuery } from '../../shared/records/shapes.ts'
import { createRecords, prepareCreation, setArchived, updateRecord, upsertRecord } from '../../shared/records/work.ts'
import * as schema from './schema.ts'

const base = '/v1/apps/{saasAppId}/objects/{objectKey}/records'
const etag = { ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' } }
const location = {
  Location: { description: 'The address of the record.', example: '/v1/apps/…/objects/…/records/…' },
}
const writing = {
  area: 'Records',
  credentials: ['live', 'dat'],
  scope: 'records.write',
  rateClass: 'write',
  transaction: 'write',
  mcp: true,
  responseHeaders: etag,
} as const

const valueErrors = [
  'field_value_invalid',
  'record_too_large',
  'field_read_only',
  'required_field_missing',
  'reference_not_found',
  'ownership_conflict',
  'duplicate_value',
  'permission_denied',
] as const
const changeErrors = ['object_not_found', 'record_not_found', 'revision_conflict'] as const

const create = operation({
  ...writing,
  id: 'developerRecordsCreate',
  objectActions: ['create'],
  method: 'POST',
  path: base,
  summary: 'Create a record.',
  description:
    'Without an owner and a role the record belongs to the organization, and everybody who may read the object sees it.',
  params: schema.ObjectParams,
  body: schema.CreateBody,
  responses: { 201: schema.RecordSchema },
  responseHeaders: { ...etag, ...location },
  errors: ['object_not_found', ...valueErrors],

  async handler(context, { params, body }) {
    const scope = await recordScope(context, params.objectKey)
    const [row] = await createRecords(scope, [prepareCreation(scope, body)])
    return created(scope, row!)
  },
})

const update = operation({
  ...writing,
  id: 'developerRecordsUpdate',
  objectActions: ['update'],
  method: 'PATCH',
  path: `${base}/{recordId}`,
  summary: 'Change fields, owner, role, location or participants of a record.',
  description: 'What the body does not name stays. A change that changes nothing keeps the revision.',
  params: schema.RecordParams,
  body: schema.UpdateBody,
  ifMatch: true,
  responses: { 200: schema.RecordSchema },
  errors: [...changeErrors, 'record_archived', ...valueErrors],

  async handler(context, { params, body, ifMatch }) {
    const scope = await recordScope(context, params.objectKey)
    return changed(scope, await updateRecord(scope, params.recordId, body, ifMatch))
  },
})

const archive = operation({
  ...writing,
  id: 'developerRecordsArchive',
  objectActions: ['archive'],
  method: 'DELETE',
  path: `${base}/{recordId}`,
  summary: 'Archive a record.',
  description:
    'It leaves lists, counts and search, and can be restored. Archiving it again changes nothing. Relationships that start ' +
    'at it end, refuse, or archive the related records (at most 1,000), as the model says of each.',
  params: schema.RecordParams,
  query: RevisionQuery,
  ifMatch: true,
  responses: { 200: schema.RecordSchema },
  errors: [...changeErrors, 'permission_denied', 'relationship_restricts'],

  async handler(context, { params, query, ifMatch }) {
    const scope = await recordScope(context, params.objectKey)
    return changed(scope, await setArchived(scope, params.recordId, true, query.expectedRevision, ifMatch))
  },
})

const restore = operation({
  ...writing,
  id: 'developerRecordsRestore',
  objectActions: ['archive'],
  method: 'POST',
  path: `${base}/{recordId}:restore`,
  summary: 'Restore an archived record.',
  description: 'It returns to lists, counts and search. Restoring a live record changes nothing.',
  params: schema.RecordParams,
  body: RevisionBody,
  bodyOptional: true,
  ifMatch: true,
  responses: { 200: schema.RecordSchema },
  errors: [...changeErrors, 'permission_denied', 'duplicate_value'],

  async handler(context, { params, body, ifMatch }) {
    const scope = await recordScope(context, params.objectKey)
    return changed(scope, await setArchived(scope, params.recordId, false, body.expectedRevision, ifMatch))
  },
})

const upsert = operation({
  ...writing,
  id: 'developerRecordsUpsert',
  objectActions: ['create', 'update'],
  method: 'PUT',
  path: `${base}/by-key/{externalKey}`,
  summary: 'Update the record with this external key, or create it.',
  description: 'Answers 200 or 201. Of several that race to create a key one creates and the others update.',
  params: schema.ExternalKeyParams,
  body: schema.UpsertBody,
  ifMatch: true,
  responses: { 200: schema.RecordSchema, 201: schema.RecordSchema },
  errors: [...changeErrors, ...valueErrors],

  async handler(context, { params, body, ifMatch }) {
    const scope = await recordScope(context, params.objectKey)
    const { row, created: isNew } = await upsertRecord(scope, params.externalKey, body, ifMatch)
    return isNew ? created(scope, row) : changed(scope, row)
  },
})

const setParticipants = operation({
  ...writing,
  id: 'developerRecordsSetParticipants',
  objectActions: ['update'],
  method: 'PUT',
  path: `${base}/{recordId}/participants`,
  summary: 'Replace the users who take part in a record.',
  description: 'Whoever may place the record may say who takes part in it. An empty list leaves nobody.',
  params: schema.RecordParams,
  body: schema.ParticipantsBody,
  ifMatch: true,
  responses: { 200: schema.Participants },
  errors: [...changeErrors, 'record_archived', 'reference_not_found', 'permission_denied'],

  async handler(context, { params, body, ifMatch }) {
    const scope = await recordScope(context, params.objectKey)
    const row = await updateRecord(scope, params.recordId, body, ifMatch)
    const items = await findParticipants(scope.tx, scope.caller, params.recordId)
    return { status: 200, body: { items, nextCursor: null }, headers: { etag: `"${row.revision}"` } }
  },
})

const batch = operation({
  ...writing,
  id: 'developerRecordsBatch',
  objectActions: ['create', 'update', 'archive'],
  method: 'POST',
  path: `${base}:batch`,
  summary: 'Create, update, archive and upsert up to 200 records.',
  description:
    'Items run in order; each has its own result. With `atomic` one bad item undoes all and answers 400 with the items to correct.',
  rateClass: 'batch',
  params: schema.ObjectParams,
  body: schema.BatchBody,
  bodyBytesMax: 8 * 1024 * 1024,
  responses: { 200: schema.BatchResults },
  responseHeaders: {},
  errors: ['object_not_found', 'batch_failed'],

  async handler(context, { params, body }) {
    const scope = await recordScope(context, params.objectKey)
    const results = await runBatch(scope, body.items, body.atomic ?? false, context.correlationId)
    return {
      status: 200,
      body: {
        results: results.map((result) =>
          'row' in result
            ? { index: result.index, status: result.status, record: view(scope, result.row) }
            : { index: result.index, status: result.status, error: result.error },
        ),
      },
    }
  },
})

function view({ access }: RecordScope, row: RecordRow) {
  return viewOf(row, access, access.readable)
}

function changed(scope: RecordScope, row: RecordRow): Reply {
  return { status: 200, body: view(scope, row), headers: { etag: `"${row.revision}"` } }
}

function created(scope: RecordScope, row: RecordRow): Reply {
  const path = base.replace('{saasAppId}', scope.caller.appId).replace('{objectKey}', scope.access.object.objectKey)
  return {
    ...changed(scope, row),
    status: 201,
    headers: { etag: `"${row.revision}"`, location: `${path}/${row.record_id}` },
  }
}

export const writingOperations: readonly Operation<Context>[] = [
  create,
  update,
  archive,
  restore,
  upsert,
  setParticipants,
  batch,
]
