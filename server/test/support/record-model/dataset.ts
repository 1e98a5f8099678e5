import fc from 'fast-check'
import { type DataTypeKey, dataTypes } from '../../../src/shared/catalogue/data-types.ts'
import type { FieldDocument, ObjectDocument } from '../../../src/shared/modelling/document.ts'
import type { RecordClient } from '../record-service.ts'
import { awkwardOptions, type ValueScope, valuesOf } from './arbitrary-values.ts'
import type { Placement } from './envelope.ts'
import type { ModelObject, ModelRecord } from './world.ts'

/** Keys that SQL, JavaScript and the service itself use for something else. */
const awkwardKeys = [
  ...['toString', 'valueOf', 'hasOwnProperty', 'then', 'toJSON', 'length', 'name', 'select', 'table', 'order', 'group'],
  ...[
    'user',
    'value',
    'field',
    'op',
    'and',
    'or',
    'not',
    'related',
    'some',
    'isNull',
    'in',
    's0',
    's1',
    'count',
    't',
    'r',
  ],
  ...[
    'organization_id',
    'record_id',
    'archived_at',
    'f_a',
    'x_a',
    'a',
    'aa',
    'aA',
    'a_asc',
    'a_desc',
    'created_at',
    'z'.repeat(50),
  ],
]

const textual: readonly DataTypeKey[] = ['text', 'longText', 'email', 'phone', 'url', 'select']

/** An object with every data type, twice where it can be indexed, under awkward names in random order. */
export function objectsOfEveryType(objectKey: string, references: string): fc.Arbitrary<ObjectDocument> {
  const types = Object.keys(dataTypes) as DataTypeKey[]
  const indexable = types.filter((type) => dataTypes[type].sortable || type === 'user' || type === 'reference')
  const fields = [...types, ...indexable]
  return fc
    .record({
      keys: fc.shuffledSubarray([...awkwardKeys], { minLength: fields.length, maxLength: fields.length }),
      searchable: fc.array(fc.boolean(), { minLength: fields.length, maxLength: fields.length }),
      options: fc.shuffledSubarray(awkwardOptions, { minLength: 4 }),
    })
    .map(({ keys, searchable, options }) => {
      const documents = fields.map(
        (dataType, index): FieldDocument => ({
          fieldKey: keys[index]!,
          label: `Field ${index}`,
          dataType,
          ...(index >= types.length && { indexed: true }),
          ...(textual.includes(dataType) && { searchable: searchable[index]! }),
          ...(/elect$/.test(dataType) && { options: options.map((value) => ({ value, label: `Label ${value}` })) }),
          ...(dataType === 'reference' && { references }),
        }),
      )
      const nameField = documents.find((field) => field.dataType === 'text')!.fieldKey
      return { objectKey, label: 'Thing', pluralLabel: 'Things', nameField, fields: documents }
    })
}

export function modelOf(document: ObjectDocument): ModelObject {
  return {
    objectKey: document.objectKey,
    fields: document.fields.map(({ fieldKey, dataType, options, references }) => ({
      fieldKey,
      dataType,
      ...(options && { options: options.map((option) => option.value) }),
      ...(references !== undefined && { references }),
    })),
  }
}

/** A record before it is created. */
export interface Draft extends Placement {
  readonly values: ReadonlyMap<string, unknown>
  readonly participants: readonly string[]
}

/** Values for every field that a client may write, a third of them empty in one way or the other. */
export function valueMaps(
  document: ObjectDocument,
  scope: Omit<ValueScope, 'textMax'>,
): fc.Arbitrary<Map<string, unknown>> {
  const written = document.fields.filter((field) => field.dataType !== 'autoNumber')
  const model = modelOf(document)
  const entries = written.map(({ fieldKey, indexed }) => {
    const field = model.fields.find((candidate) => candidate.fieldKey === fieldKey)!
    const value = valuesOf(field, { ...scope, textMax: indexed ? 255 : 2000 })
    return fc.oneof(
      { weight: 4, arbitrary: value },
      { weight: 1, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    )
  })
  return fc.tuple(...entries).map((values) => {
    const pairs = values.map((value, index) => [written[index]!.fieldKey, value] as const)
    return new Map(pairs.filter(([, value]) => value !== undefined))
  })
}

const batchSize = 200

/** Creates the drafts through the service, and returns them as the model keeps them. */
export async function plant(
  client: RecordClient,
  object: ModelObject,
  drafts: readonly Draft[],
): Promise<ModelRecord[]> {
  const planted: ModelRecord[] = []
  for (let start = 0; start < drafts.length; start += batchSize) {
    const part = drafts.slice(start, start + batchSize)
    const { body } = await client.batch(
      part.map(({ values, ownerUserId, dataRoleId, locationId, participants }) => ({
        operation: 'create',
        fields: Object.fromEntries(values),
        ...(ownerUserId && { ownerUserId }),
        ...(dataRoleId && { dataRoleId }),
        ...(locationId && { locationId }),
        participants,
      })),
    )
    if (!body.results) throw new Error(`The batch was refused: ${JSON.stringify(body)}`)
    for (const [index, { record, error }] of body.results.entries()) {
      if (!record) throw new Error(`Record ${start + index} was refused: ${JSON.stringify(error)}`)
      const numbers = object.fields.filter((field) => field.dataType === 'autoNumber').map((field) => field.fieldKey)
      const { recordId, createdAt, updatedAt, archivedAt, revision } = record
      const values = new Map([...part[index]!.values, ...numbers.map((key) => [key, record.fields[key]] as const)])
      const { objectKey } = object
      planted.push({ ...part[index]!, objectKey, recordId, createdAt, updatedAt, archivedAt, revision, values })
    }
  }
  return planted
}

/** Gives a record new values through the service; what `values` does not name stays. */
export async function replant(
  client: RecordClient,
  record: ModelRecord,
  values: ReadonlyMap<string, unknown>,
): Promise<void> {
  const { status, body } = await client.update(record.recordId, { fields: Object.fromEntries(values) })
  if (status !== 200) throw new Error(`The update was refused: ${JSON.stringify(body)}`)
  record.values = new Map([...record.values, ...values])
  record.updatedAt = body.updatedAt
  record.revision = body.revision
}

export async function archivePlanted(client: RecordClient, record: ModelRecord): Promise<void> {
  const { status, body } = await client.archive(record.recordId)
  if (status !== 200) throw new Error(`The archiving was refused: ${JSON.stringify(body)}`)
  record.updatedAt = body.updatedAt
  record.archivedAt = body.archivedAt
  record.revision = body.revision
}
