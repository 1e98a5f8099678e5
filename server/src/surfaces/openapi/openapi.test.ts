import { createHash } from 'node:crypto'
import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import { lintProblems, unexplained, violations } from '../../../test/contract-checks.ts'
import { type BaseContext, type Operation, operationFor, RawBody } from '../../kernel/operation.ts'
import { createRegistry } from '../../kernel/registry.ts'
import { AppParams, Nullable, PageSize, Revision, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { assertValid } from '../../kernel/validation.ts'
import { projectContract } from './contract.ts'
import type { Json } from './json-schema.ts'
import type { ContractObject } from './objects.ts'

const operation = operationFor<BaseContext>()
const records = '/v1/apps/{saasAppId}/objects/{objectKey}/records'
const objectKey = Type.String({ pattern: '^[a-z_]+$', description: 'The object.', examples: ['deal'] })
const recordParams = { ...AppParams, objectKey, recordId: Uuid('The record.') }
const handler = async () => ({ status: 200, body: new RawBody('{}', 'application/json') })

const Thing = Type.Object(
  {
    recordId: Uuid('Names the record.'),
    state: Type.Union([Type.Literal('open'), Type.Literal('won'), Type.Null()], { description: 'Where it stands.' }),
    archivedAt: Nullable(Timestamp('When it was archived.')),
    fields: Type.Record(Type.String(), Type.Unknown(), { description: 'The fields.', 'x-object-schema': 'record' }),
    revision: Revision,
    // Names that are also keywords must not confuse the walk.
    title: Type.String({ description: 'A property called title.', examples: ['A title'] }),
    examples: Type.Array(Type.Unknown(), { description: 'A property called examples.', examples: [[{ title: 'x' }]] }),
  },
  { title: 'Thing', description: 'A record.' },
)

const Filter = Type.Cyclic(
  {
    Filter: Type.Union(
      [
        Strict({ and: Type.Array(Type.Ref('Filter'), { description: 'All of these.' }) }),
        Strict({ field: Type.String({ description: 'A field.', examples: ['stage'] }) }),
      ],
      { description: 'What a record must fulfil.' },
    ),
  },
  'Filter',
)

const common = {
  area: 'Records',
  description: 'For tests.',
  credentials: ['live', 'dat'],
  mcp: true,
  errors: ['record_not_found'],
  handler,
} as const

const operations = [
  operation({
    ...common,
    id: 'developerRecordsSearch',
    method: 'POST',
    path: `${records}/search`,
    summary: 'Search records.',
    scope: 'records.read',
    rateClass: 'search',
    transaction: 'read',
    params: Type.Object({ ...AppParams, objectKey }),
    query: Strict({ pageSize: Type.Optional(PageSize()) }),
    body: Strict({ filter: Type.Optional(Filter) }),
    bodyOptional: true,
    responses: { 200: Strict({ records: Type.Array(Thing, { description: 'A page.' }) }) },
  }),
  operation({
    ...common,
    id: 'developerRecordsUpdate',
    method: 'PATCH',
    path: `${records}/{recordId}`,
    summary: 'Update a record.',
    description: 'Changes the fields that are named.',
    scope: 'records.write',
    rateClass: 'write',
    transaction: 'write',
    ifMatch: true,
    params: Type.Object(recordParams),
    body: Strict({
      fields: Type.Record(Type.String(), Type.Unknown(), { description: 'New values.', 'x-object-schema': 'update' }),
    }),
    responses: { 200: Thing },
    responseHeaders: { ETag: { description: 'The revision, quoted.', example: '"3"' } },
  }),
  operation({
    ...common,
    id: 'developerRecordsGet',
    method: 'GET',
    path: `${records}/{recordId}`,
    summary: 'Read a record.',
    scope: 'records.read',
    rateClass: 'read',
    transaction: 'read',
    params: Type.Object(recordParams),
    responses: { 200: Thing },
    responseHeaders: { ETag: { description: 'The revision, quoted.', example: '"3"' } },
  }),
  operation({
    ...common,
    id: 'developerPagesList',
    method: 'GET',
    area: 'Pages',
    path: '/v1/apps/{saasAppId}/pages/drafts',
    summary: 'List page drafts.',
    credentials: ['draft'],
    scope: null,
    rateClass: 'read',
    transaction: 'read',
    params: Type.Object(AppParams),
    responses: { 200: Strict({ total: Type.Integer({ description: 'How many.', examples: [3] }) }) },
  }),
]

function object(key: string, label: string): ContractObject {
  // Two fields with one label, which differ: labels are not names of schemas.
  const name = { type: 'string', title: 'Name', description: `The name of a ${key}.`, examples: ['Big deal'] }
  const schema = { type: 'object', description: label, properties: { name } }
  return {
    objectKey: key,
    label,
    create: true,
    update: true,
    archive: true,
    jsonSchema: { record: schema, create: schema, update: schema },
    nameField: 'name',
    expandable: [],
    uniqueFields: [],
  }
}
const objects = [object('deal', 'Deal'), object('company', 'Company')]

const appId = '0199a1b2-0000-7000-8000-00000000000a'
const caller = { appId, credentialKind: 'live', scopes: new Set(['records.read', 'records.write']) } as const
const baseUrl = 'https://api.portico.test'

function project(input: Partial<Parameters<typeof projectContract>[0]> = {}) {
  const made = { registry: createRegistry(operations), caller, objects, events: [], baseUrl, ...input }
  const contract = projectContract(made)
  return { ...contract, document: JSON.parse(contract.text) as Json }
}

/** Walks `a.b.c` of a document, following references. */
function at(document: Json, ...path: readonly string[]): Json {
  return path.reduce<Json>((node, name) => follow(document, node[name] as Json), document)
}

function follow(document: Json, node: Json): Json {
  const reference = node?.['$ref']
  return typeof reference === 'string' ? at(document, ...reference.slice(2).split('/')) : node
}

const operationsOf = (document: Json) =>
  Object.values(document['paths'] as Json).flatMap((path) => Object.values(path as Json) as Json[])

describe('the document', () => {
  test('is valid OpenAPI 3.1.1, and a linter has nothing to say', async () => {
    for (const contract of [
      project(),
      project({ objects: [] }),
      project({ caller: { ...caller, credentialKind: 'draft' } }),
    ]) {
      expect(contract.document).toMatchObject({ openapi: '3.1.1', info: { version: '1.0.0-developer-platform' } })
      expect(await violations(contract.document)).toEqual([])
      expect(await lintProblems(contract.text)).toEqual([])
    }
  })

  test('describes every property and parameter, with an example', () => {
    expect(unexplained(project().document)).toEqual([])
  })

  test('is canonical: its bytes give its fingerprint, and nothing depends on the order of what goes in', () => {
    const contract = project()
    expect(contract.sha256).toBe(createHash('sha256').update(Buffer.from(contract.text)).digest('hex'))
    expect(contract.sha256).toMatch(/^[0-9a-f]{64}$/)
    const scopes = new Set(['records.write', 'records.read'])
    expect(project({ objects: objects.toReversed(), caller: { ...caller, scopes } }).text).toBe(contract.text)
    expect(project({ objects: [objects[0]!] }).sha256).not.toBe(contract.sha256)
  })

  test('shows only what the caller could ever invoke', () => {
    const ids = (credentialKind: 'live' | 'dat' | 'draft', ...scopes: string[]) =>
      operationsOf(project({ caller: { appId, credentialKind, scopes: new Set(scopes) } }).document)
        .map((one) => one['operationId'])
        .sort()
    expect(ids('live', 'records.read')).toEqual(['developerRecordsGet', 'developerRecordsSearch'])
    expect(ids('dat', 'records.write')).toEqual(['developerRecordsUpdate'])
    expect(ids('draft', 'records.read', 'records.write')).toEqual(['developerPagesList'])
    expect(ids('live')).toEqual([])
  })

  test('shapes with a title are written once', () => {
    const { text: written, document } = project()
    expect(Object.keys(at(document, 'components', 'schemas')).sort()).toEqual([
      'ApiErrorResponse',
      'CompanyFields',
      'CompanyUpdate',
      'DealFields',
      'DealUpdate',
      'Filter',
      'Thing',
    ])
    expect(written.split('"A property called title."').length).toBe(2)
  })

  test('keys of objects that meet each other, or a name of the service, get names of their own', () => {
    const Taken = Type.Object({ n: Type.Integer() }, { title: 'DealRecord' })
    const taken = { ...operations[2]!, id: 'taken', path: '/v1/taken', responses: { 200: Taken } } as Operation
    const registry = createRegistry([...operations, taken])
    const { document } = project({
      registry,
      objects: [object('deal', 'Deal'), object('my_deal', 'A'), object('my-deal', 'B')],
    })
    const names = Object.keys(at(document, 'components', 'schemas')).filter((name) => /Fields|Record/.test(name))
    expect(names.sort()).toEqual(['Deal2Fields', 'DealRecord', 'MyDeal2Fields', 'MyDealFields'])
    expect(at(document, 'components', 'schemas', 'DealRecord', 'properties')).toHaveProperty('n')
  })

  test('two shapes with one title are refused', () => {
    const other = Type.Object({ other: Type.String() }, { title: 'Thing' })
    const clash = { ...operations[2]!, id: 'other', path: '/v1/other', responses: { 200: other } } as Operation
    expect(() => project({ registry: createRegistry([...operations, clash]) })).toThrow(/two different schemas/i)
  })
})

describe('an operation', () => {
  const { document } = project()
  const update = at(document, 'paths', `${records}/{recordId}`, 'patch')

  test('says what it is, who may call it, and what that takes', () => {
    expect(update).toMatchObject({
      operationId: 'developerRecordsUpdate',
      tags: ['Records'],
      'x-required-scope': 'records.write',
      'x-rate-class': 'write',
      security: [{ LiveAppCredential: [] }, { DelegatedUserCredential: [] }],
    })
    expect(update['description']).toContain('`records.write`')
    expect(at(document, 'components', 'securitySchemes', 'LiveAppCredential')).toMatchObject({ scheme: 'bearer' })
  })

  test('lists every error status with its codes and an example of each', () => {
    const statuses = Object.keys(update['responses'] as Json)
    expect(statuses).toEqual(['200', '400', '401', '403', '404', '409', '413', '415', '429', '500', '503'])
    const unauthorised = at(document, 'paths', `${records}/{recordId}`, 'patch', 'responses', '401')
    expect(unauthorised['description']).toContain('`credential_expired`')
    expect(Object.keys(unauthorised['headers'] as Json)).toEqual(['WWW-Authenticate', 'X-Correlation-Id'])
    const examples = at(unauthorised, 'content', 'application/json', 'examples')
    expect(examples['credential_missing']).toMatchObject({ value: { code: 'credential_missing' } })
    const limited = at(document, 'paths', `${records}/{recordId}`, 'patch', 'responses', '429')
    expect(Object.keys(limited['headers'] as Json)).toContain('Retry-After')
  })

  test('names the headers that it answers with and those that it reads', () => {
    const headers = at(update, 'responses', '200', 'headers')
    expect(Object.keys(headers).sort()).toEqual([
      'ETag',
      'Idempotency-Replayed',
      'RateLimit',
      'RateLimit-Policy',
      'X-Correlation-Id',
    ])
    const names = (one: Json) => (one['parameters'] as Json[]).map((parameter) => follow(document, parameter)['name'])
    expect(names(update)).toEqual(['saasAppId', 'objectKey', 'recordId', 'Idempotency-Key', 'If-Match'])
    const read = at(document, 'paths', `${records}/{recordId}`, 'get')
    expect(names(read)).toContain('If-None-Match')
    expect(Object.keys(read['responses'] as Json)).toContain('304')
  })

  test("knows the caller's application and objects", () => {
    expect(at(document, 'components', 'parameters', 'saasAppId')['example']).toBe(appId)
    expect(at(document, 'components', 'parameters', 'objectKey', 'schema')['enum']).toEqual(['company', 'deal'])
    const body = at(update, 'requestBody', 'content', 'application/json', 'schema', 'properties', 'fields')
    expect(body).toEqual({
      description: 'New values.',
      anyOf: [{ $ref: '#/components/schemas/CompanyUpdate' }, { $ref: '#/components/schemas/DealUpdate' }],
    })
    const without = project({ objects: [] }).document
    expect(at(without, 'components', 'parameters', 'objectKey', 'schema')['enum']).toBeUndefined()
  })

  test('shows request examples that its own validation accepts', () => {
    for (const one of operations) {
      const method = one.method.toLowerCase()
      const shown = at(document, 'paths')[one.path] as Json | undefined
      if (!one.body || !shown) continue
      const media = at(shown, method, 'requestBody', 'content', 'application/json')
      assertValid(one.body, media['example'])
    }
  })

  test('writes unions, nulls and maps as readers expect them', () => {
    const properties = at(document, 'components', 'schemas', 'Thing', 'properties')
    expect(properties['state']).toEqual({
      type: ['string', 'null'],
      enum: ['open', 'won', null],
      description: 'Where it stands.',
    })
    expect(properties['archivedAt']).toMatchObject({ type: ['string', 'null'], description: 'When it was archived.' })
    const without = project({ objects: [] }).document
    expect(at(without, 'components', 'schemas', 'Thing', 'properties', 'fields')).toEqual({
      type: 'object',
      description: 'The fields.',
      additionalProperties: {},
    })
  })
})

test('a document that is not valid, or not good, is found', async () => {
  const { document } = project()
  expect(await violations({ ...document, paths: { nowhere: {} } })).toHaveLength(1)
  const operationId = { ...document, paths: { '/a': { get: { responses: {} } } } }
  expect((await lintProblems(JSON.stringify(operationId))).join()).toContain('operation-operationId')
})

test('what is unexplained is found', () => {
  const bad = { a: { properties: { name: { type: 'string' }, list: { type: 'array', description: 'A list.' } } } }
  expect(unexplained(bad)).toEqual(['#/a/properties/name has no description', '#/a/properties/name has no example'])
})
