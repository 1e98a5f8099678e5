import type { Operation, Reply } from '../../kernel/operation.ts'
import { type Context, operation } from '../../shared/context.ts'
import { runBatch } from '../../shared/records/batch.ts'
import type { RecordRow } from '../../shared/records/record.ts'
import type { RecordScope } from '../../shared/records/scope.ts'
import { RevisionBody, RevisionQuery } from '../../shared/records/shapes.ts'
import { createRecords, prepareCreation, setArchived, updateRecord } from '../../shared/records/work.ts'
import { basePath, etag, moduleScope, operationId, writingOf } from './declaration.ts'
import type { Module } from './module.ts'
import { flatPosition, inFlatTerms, nested, nestedItem, rowOf } from './row.ts'
import { Assignment, ModuleParams, RowParams, type Shapes } from './schemas.ts'

type Body = Readonly<Record<string, unknown>>

const valueErrors = [
  'field_value_invalid',
  'record_too_large',
  'field_read_only',
  'field_locked',
  'required_field_missing',
  'reference_not_found',
  'state_transition_invalid',
  'ownership_conflict',
  'duplicate_value',
  'permission_denied',
] as const
const changeErrors = ['object_not_found', 'record_not_found', 'revision_conflict'] as const

/** The operations of a module that write: create, update, archive, restore, assign and batch. */
export function writingOperationsOf(module: Module, shapes: Shapes): readonly Operation<Context>[] {
  const writing = { ...writingOf(module), responseHeaders: etag }
  const base = `${basePath}/${module.key}`
  const thing = module.label.toLowerCase()
  const article = /^[aeiou]/.test(thing) ? 'an' : 'a'

  const create = operation({
    ...writing,
    id: operationId(module, 'Create'),
    objectActions: ['create'],
    method: 'POST',
    path: base,
    summary: `Create ${article} ${thing}.`,
    description:
      'Without an owner and a role it belongs to the organization, and everybody who may read the module sees it.',
    params: ModuleParams,
    body: shapes.NewRow,
    responses: { 201: shapes.Row },
    responseHeaders: {
      ...etag,
      Location: { description: 'The address of the record.', example: `/v1/apps/…/modules/${module.key}/…` },
    },
    errors: ['object_not_found', ...valueErrors],

    async handler(context, { body }) {
      const scope = await moduleScope(context, module)
      const [row] = await inFlatTerms(async () => createRecords(scope, [prepareCreation(scope, nested(body as Body))]))
      const address = `${base.replace('{saasAppId}', scope.caller.appId)}/${row!.record_id}`
      const { headers, ...reply } = changed(scope, row!)
      return { ...reply, status: 201, headers: { ...headers, location: address } }
    },
  })

  const update = operation({
    ...writing,
    id: operationId(module, 'Update'),
    objectActions: ['update'],
    method: 'PATCH',
    path: `${base}/{recordId}`,
    summary: `Change ${article} ${thing}.`,
    description: 'What the body does not name stays. A change that changes nothing keeps the revision.',
    params: RowParams,
    body: shapes.Changes,
    ifMatch: true,
    responses: { 200: shapes.Row },
    errors: [...changeErrors, 'record_archived', ...valueErrors],

    async handler(context, { params, body, ifMatch }) {
      const scope = await moduleScope(context, module)
      const change = nested(body as Body)
      return changed(scope, await inFlatTerms(() => updateRecord(scope, params.recordId, change, ifMatch)))
    },
  })

  const archive = operation({
    ...writing,
    id: operationId(module, 'Archive'),
    objectActions: ['archive'],
    method: 'DELETE',
    path: `${base}/{recordId}`,
    summary: `Archive ${article} ${thing}.`,
    description: 'It leaves lists, counts and search, and can be restored. Archiving it again changes nothing.',
    params: RowParams,
    query: RevisionQuery,
    ifMatch: true,
    responses: { 200: shapes.Row },
    errors: [...changeErrors, 'relationship_restricts', 'permission_denied'],

    async handler(context, { params, query, ifMatch }) {
      const scope = await moduleScope(context, module)
      return changed(scope, await setArchived(scope, params.recordId, true, query.expectedRevision, ifMatch))
    },
  })

  const restore = operation({
    ...writing,
    id: operationId(module, 'Restore'),
    objectActions: ['archive'],
    method: 'POST',
    path: `${base}/{recordId}:restore`,
    summary: `Restore an archived ${thing}.`,
    description: 'It returns to lists, counts and search. Restoring a live one changes nothing.',
    params: RowParams,
    body: RevisionBody,
    bodyOptional: true,
    ifMatch: true,
    responses: { 200: shapes.Row },
    errors: [...changeErrors, 'permission_denied', 'duplicate_value'],

    async handler(context, { params, body, ifMatch }) {
      const scope = await moduleScope(context, module)
      return changed(scope, await setArchived(scope, params.recordId, false, body.expectedRevision, ifMatch))
    },
  })

  const assign = operation({
    ...writing,
    id: operationId(module, 'Assign'),
    objectActions: ['update'],
    method: 'POST',
    path: `${base}/{recordId}:assign`,
    summary: `Say whose ${article} ${thing} is, where it belongs and who takes part in it.`,
    description:
      'What the body does not name stays. Naming an owner takes it from its role, and the reverse. Nobody can give it to where they could not have put it.',
    params: RowParams,
    body: Assignment,
    ifMatch: true,
    responses: { 200: shapes.Row },
    errors: [...changeErrors, 'record_archived', 'reference_not_found', 'ownership_conflict', 'permission_denied'],

    async handler(context, { params, body, ifMatch }) {
      const scope = await moduleScope(context, module)
      return changed(scope, await updateRecord(scope, params.recordId, body, ifMatch))
    },
  })

  const batch = operation({
    ...writing,
    id: operationId(module, 'Batch'),
    objectActions: ['create', 'update', 'archive'],
    method: 'POST',
    path: `${base}:batch`,
    summary: `Create, update, archive and upsert up to 200 ${module.pluralLabel.toLowerCase()}.`,
    description:
      'Items run in order; each has its own result. With `atomic` one bad item undoes all and answers 400 with the items to correct.',
    rateClass: 'batch',
    params: ModuleParams,
    body: shapes.Batch,
    bodyBytesMax: 8 * 1024 * 1024,
    responses: { 200: shapes.BatchResults },
    responseHeaders: {},
    errors: ['object_not_found', 'batch_failed'],

    async handler(context, { body }) {
      const scope = await moduleScope(context, module)
      const { items, atomic = false } = body as unknown as { items: readonly Body[]; atomic?: boolean }
      const results = await inFlatTerms(() => runBatch(scope, items.map(nestedItem), atomic, context.correlationId))
      return {
        status: 200,
        body: {
          results: results.map((result) =>
            'row' in result
              ? { index: result.index, status: result.status, record: rowOf(result.row, scope) }
              : { index: result.index, status: result.status, error: inFlatForm(result.error) },
          ),
        },
      }
    },
  })

  return [create, update, archive, restore, assign, batch]
}

function changed(scope: RecordScope, row: RecordRow): Reply {
  return { status: 200, body: rowOf(row, scope), headers: { etag: `"${row.revision}"` } }
}

function inFlatForm<E extends { readonly details?: readonly { readonly field: string }[] }>(error: E): E {
  const details = error.details?.map((detail) => ({ ...detail, field: flatPosition(detail.field) }))
  return details ? { ...error, details } : error
}
