import type { Operation } from '../../kernel/operation.ts'
import { type Context, operation } from '../../shared/context.ts'
import { beginExport, beginImport, exporting, importing } from '../../shared/exchange/begin.ts'
import { ObjectParams } from './schema.ts'

const base = '/v1/apps/{saasAppId}/objects/{objectKey}/records'
const common = { area: 'Records', credentials: ['live', 'dat'], params: ObjectParams } as const

const exportRecords = operation({
  ...common,
  ...exporting,
  id: 'developerRecordsExport',
  path: `${base}:export`,
  scope: 'records.read',
  summary: 'Write the records of a search into a file.',

  handler: (context, { params, body }) =>
    beginExport(context, { objectKey: params.objectKey, native: false, scope: 'records.read' }, body),
})

const importRecords = operation({
  ...common,
  ...importing,
  id: 'developerRecordsImport',
  path: `${base}:import`,
  scope: 'records.write',
  objectActions: ['create', 'update'],
  summary: 'Create or change records from a file.',

  handler: (context, { params, body }) =>
    beginImport(context, { objectKey: params.objectKey, native: false, scope: 'records.write' }, body),
})

export const exchangeOperations: readonly Operation<Context>[] = [exportRecords, importRecords]
