import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lintProblems, unexplained, violations } from '../../../test/contract-checks.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { follow, shownIn } from '../../../test/support/shown-requests.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { testModel } from '../../../test/support/test-model.ts'

import { registry } from '../../operations.ts'
import type { FieldDocument } from '../../shared/modelling/document.ts'
import { describedArea } from './areas.ts'
import type { Json } from './json-schema.ts'

/** Sends what the document shows, with nothing changed but the id of a record. */
let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.stop())

async function documentOf(token: string, appId = service.app.appId): Promise<Json> {
  const { status, json } = await service.call('GET', `/v1/apps/${appId}/openapi.json`, { token })
  expect(status).toBe(200)
  return json
}

const recordId = /[0-9a-f-]{36}(?=$|:|\/history|\/participants)/

/** Status by operation: what happens when the shown requests are sent in turn. */
async function sendAll(document: Json, token: string): Promise<Record<string, number>> {
  const shown = shownIn(document)
  const statuses: Record<string, number> = {}
  let created: string | undefined
  const order = ['Create', 'Get', 'GetByKey', 'Search', 'Count', 'Update', 'Upsert', 'Batch', 'Archive', 'Restore']
  for (const id of order.map((name) => `developerRecords${name}`)) {
    const one = shown.get(id)
    if (!one) continue
    const ofRecord = one.path.includes('{recordId}')
    const path = ofRecord && created !== undefined ? one.address.replace(recordId, created) : one.address
    const answer = await service.call(one.method, path, {
      token,
      ...(one.body !== undefined && { body: one.body }),
    })
    statuses[id] = answer.status
    if (id.endsWith('Create')) created = answer.json['recordId'] as string
    const failed = ((answer.json['results'] ?? []) as Json[]).map((result) => result['status'])
    const problem = answer.status >= 400 || failed.some((status) => Number(status) >= 300)
    if (problem && ![404, 409].includes(answer.status))
      statuses[`${id} ${path} ${JSON.stringify(one.body)} ${answer.text}`] = answer.status
  }
  return statuses
}

const readings = { developerRecordsSearch: 200, developerRecordsCount: 200 }
const writings = {
  developerRecordsCreate: 201,
  developerRecordsGet: 200,
  developerRecordsGetByKey: 200,
  ...readings,
  developerRecordsUpdate: 200,
  developerRecordsUpsert: 200,
  developerRecordsBatch: 200,
}
/** The revision that is shown need not be the current one. */
const archiving = { developerRecordsArchive: 200, developerRecordsRestore: expect.toBeOneOf([200, 409]) }

describe('what the document shows can be sent as it stands', () => {
  test.each(['owner', 'sales', 'clerk'] as const)('by %s', async (name) => {
    const { token } = service.app.organizations.b.users[name]
    const statuses = await sendAll(await documentOf(token), token)
    const expected = { ...writings, ...archiving }
    expect(statuses).toEqual(expected)
    const { json } = await service.call('POST', `/v1/apps/${service.app.appId}/objects/deal/records/search`, {
      token,
      body: { filter: { field: 'createdAt', op: 'gte', value: '2020-01-01T00:00:00.000Z' } },
    })
    for (const record of json['records'] as Json[]) {
      const path = `/v1/apps/${service.app.appId}/objects/deal/records/${String(record['recordId'])}`
      await service.call('PATCH', path, { token, body: { externalKey: null } })
    }
  })

  test('by somebody who only reads, and is shown nothing else', async () => {
    const { token } = service.app.organizations.b.users.support
    const document = await documentOf(token)
    expect(await sendAll(document, token)).toEqual({
      ...readings,
      developerRecordsGet: 404,
      developerRecordsGetByKey: 404,
    })
    const ids = [...shownIn(document).keys()]
    expect(ids.filter((id) => /Records(Create|Upsert|Update|Archive|Restore|Batch|SetParticipants)$/.test(id))).toEqual(
      [],
    )
    const schemas = Object.keys((document['components'] as Json)['schemas'] as Json)
    expect(schemas.filter((schema) => /(Create|Update)$/.test(schema))).toEqual([])
    expect(shownIn(document).get('developerRecordsGet')!.response).not.toHaveProperty('fields.amount')
  })

  test.each(testModel.objects)('in an application with $objectKey alone', async (object) => {
    const fields = object.fields.filter((field) => field.dataType !== 'reference')
    const app = await createTenant(service.db.database, {
      model: { objects: [{ ...object, fields }], roles: {} },
      organizations: { only: { credentials: { live: {} } } },
    })
    const { token } = app.organizations.only.credentials.live
    const document = await documentOf(token, app.appId)
    const expected = { ...writings, ...archiving }
    expect(await sendAll(document, token)).toEqual(expected)
    expect(unexplained(document)).toEqual([])
  })

  test('in an application without objects', async () => {
    const app = await createTenant(service.db.database, { organizations: { only: { credentials: { live: {} } } } })
    const { token } = app.organizations.only.credentials.live
    const document = await documentOf(token, app.appId)
    expect(shownIn(document).get('developerRecordsSearch')!.body).toMatchObject({ filter: { field: 'createdAt' } })
    expect(shownIn(document).has('developerRecordsCreate')).toBe(false)
    expect(await violations(document)).toEqual([])
    expect(await lintProblems(JSON.stringify(document))).toEqual([])
  })
})

describe('one object throughout', () => {
  test('the path, the bodies and the answers speak of the same', async () => {
    const shown = shownIn(await documentOf(service.app.organizations.a.users.owner.token))
    for (const { id, address, response } of shown.values()) {
      if (!id.startsWith('developerRecords')) continue
      expect(address).toContain('/objects/deal/')
      for (const record of [response, (response['records'] as Json[] | undefined)?.[0]]) {
        if (record && 'objectKey' in record) expect([id, record['objectKey']]).toEqual([id, 'deal'])
      }
    }
    expect(shown.get('developerRecordsGet')!.response).toMatchObject({ fields: { stage: 'open', amount: '1250.00' } })
    expect(shown.get('developerRecordsSearch')!.body).toMatchObject({ expand: ['company'] })
  })

  test('an operation names the objects that allow it', async () => {
    const document = await documentOf(service.app.organizations.a.users.clerk.token)
    const enumOf = (method: string, path: string) => {
      const operation = ((document['paths'] as Json)[`/v1/apps/{saasAppId}/objects/{objectKey}${path}`] as Json)[
        method
      ] as Json
      const parameters = (operation['parameters'] as Json[]).map((one) => follow(document, one))
      return (parameters.find((one) => one['name'] === 'objectKey')!['schema'] as Json)['enum']
    }
    expect(enumOf('post', '/records/search')).toEqual(['company', 'deal', 'dossier'])
    expect(enumOf('delete', '/records/{recordId}')).toEqual(['deal', 'dossier'])
    expect(enumOf('post', '/records')).toEqual(['company', 'deal', 'dossier'])
  })
})

describe('generated clients', () => {
  test('tell records apart by the key of their object, and know the types of their fields', async () => {
    const document = await documentOf(service.app.organizations.a.users.owner.token)
    const schemas = (document['components'] as Json)['schemas'] as Record<string, Json>
    expect(schemas['Record']).toMatchObject({
      oneOf: ['Company', 'Deal', 'Dossier', 'Specimen', 'Vault'].map((stem) => ({
        $ref: `#/components/schemas/${stem}Record`,
      })),
      discriminator: { propertyName: 'objectKey', mapping: { deal: '#/components/schemas/DealRecord' } },
    })
    expect(schemas['DealRecord']).toMatchObject({
      properties: {
        objectKey: { type: 'string', const: 'deal' },
        fields: { $ref: '#/components/schemas/DealFields' },
      },
    })
    expect(schemas['DealFields']).toMatchObject({ properties: { amount: { format: 'decimal' } } })
    expect(schemas['Filter']!['oneOf']).toHaveLength(5)
    expect(schemas['FilterComparison']).toMatchObject({ properties: { op: { type: 'string' } } })
    expect(await violations(document)).toEqual([])
    expect(await lintProblems(JSON.stringify(document))).toEqual([])
    expect(unexplained(document)).toEqual([])
    expect(JSON.stringify(document)).not.toMatch(/"x-(object|filter)-/)
    for (const node of nodesOf(document['components'])) {
      const values = node['enum']
      if (Array.isArray(values) && values.every((value) => typeof value === 'string'))
        expect(node['type']).toBe('string')
    }
  })
})

function nodesOf(value: unknown): Json[] {
  if (typeof value !== 'object' || value === null) return []
  return [...(Array.isArray(value) ? [] : [value as Json]), ...Object.values(value).flatMap(nodesOf)]
}

test('every resource family is described', () => {
  expect(registry.operations.filter((operation) => !describedArea(operation))).toEqual([])
})

test('examples keep within the limits of their fields', async () => {
  const limited = (fieldKey: string, dataType: FieldDocument['dataType'], validation: FieldDocument['validation']) => {
    return { fieldKey, label: fieldKey, dataType, required: true, ...(validation && { validation }) }
  }
  const fields = [
    limited('code', 'text', { pattern: '[A-Z]{2}-[0-9]', maxLength: 4 }),
    limited('short', 'text', { maxLength: 3 }),
    limited('long', 'longText', { minLength: 100 }),
    limited('few', 'integer', { maximum: 5 }),
    limited('ratio', 'float', { minimum: 1, maximum: 2 }),
    limited('price', 'decimal', { scale: 0, maximum: 100 }),
    limited('site', 'url', {}),
    limited('mail', 'email', {}),
    limited('phone', 'phone', {}),
    limited('day', 'date', {}),
    limited('moment', 'dateTime', {}),
    limited('flag', 'boolean', {}),
    limited('data', 'json', {}),
  ]
  const app = await createTenant(service.db.database, {
    model: {
      objects: [{ objectKey: 'thing', label: 'Thing', pluralLabel: 'Things', nameField: 'code', fields }],
      roles: {},
    },
    organizations: { only: { credentials: { live: {} } } },
  })
  const { token } = app.organizations.only.credentials.live
  const document = await documentOf(token, app.appId)
  const expected = { ...writings, ...archiving }
  expect(await sendAll(document, token)).toEqual(expected)
  expect(await lintProblems(JSON.stringify(document))).toEqual([])
})
