import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Customer,
  dealModel,
  eventually,
  field,
  type ModelBuilder,
  newModelBuilder,
} from '../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../test/support/platform.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { allScopes, moduleKeys } from '../../kernel/scopes.ts'
import { type NativeField, versioned } from '../../shared/modelling/native-objects.ts'
import { keyTag } from '../../shared/records/search-document.ts'
import { modules } from './descriptors.ts'
import { nativeObjects } from './native-objects.ts'

/** Native objects through the operations of records: what a client of custom objects knows already works on them. */
interface Row {
  readonly recordId: string
  readonly displayName: string | null
  readonly revision: number
  readonly fields: Readonly<Record<string, unknown>>
}
interface Problem {
  readonly code: string
  readonly details?: readonly { readonly field: string; readonly code: string; readonly message: string }[]
}

let platform: Platform
let model: ModelBuilder
let customer: Customer
beforeAll(async () => {
  platform = await startPlatform()
  model = await newModelBuilder(platform)
  customer = await model.customer()
})
afterAll(() => platform?.stop())

test('no two fields of a module share the mark of their texts in search documents', () => {
  for (const { key, fields } of modules) {
    expect([key, new Set(fields.map(({ fieldKey }) => keyTag(fieldKey))).size]).toEqual([key, fields.length])
  }
})

const scopesOfContacts = ['records.read', 'modules.contacts.read']

async function create(objectKey: string, fields: object): Promise<Row> {
  const { status, json, text } = await customer.records<Row>('POST', `/${objectKey}/records`, { fields })
  expect(status, text).toBe(201)
  return json
}

async function update(objectKey: string, { recordId }: Pick<Row, 'recordId'>, fields: object): Promise<Row> {
  const { status, json, text } = await customer.records<Row>('PATCH', `/${objectKey}/records/${recordId}`, { fields })
  expect(status, text).toBe(200)
  return json
}

async function refusal(method: string, path: string, body: object): Promise<[number, string, string | undefined]> {
  const { status, json } = await customer.records<Problem>(method, path, body)
  return [status, json.code, json.details?.[0]?.field]
}

test('scopes are made of the keys of the modules, in their order', () => {
  expect(moduleKeys).toEqual(modules.map(({ key }) => key))
  const scopes = modules.flatMap(({ key }) => [`modules.${key}.read`, `modules.${key}.write`])
  expect(allScopes.filter((scope) => scope.startsWith('modules.'))).toEqual([...scopes, 'modules.global-search.read'])
})

test('an application is born with every module, before it has a model', async () => {
  const { json } = await customer.records<{ objects: { objectKey: string; kind: string }[] }>('GET', '')
  expect(json.objects.map(({ objectKey }) => objectKey)).toEqual(modules.map(({ key }) => key).sort())
  expect(new Set(json.objects.map(({ kind }) => kind))).toEqual(new Set(['native']))
})

test('a schema tells read-only fields, defaults and the shape of lists', async () => {
  const { json } = await customer.records<{
    fields: { fieldKey: string; readOnly: boolean; access: { write: boolean } }[]
    jsonSchema: Record<
      'record' | 'create',
      { properties: Record<string, Record<string, unknown>>; required?: string[] }
    >
  }>('GET', '/contacts/schema')
  const displayName = json.fields.find(({ fieldKey }) => fieldKey === 'displayName')
  expect(displayName).toMatchObject({ readOnly: true, access: { write: false } })
  const { record, create: creation } = json.jsonSchema
  expect(record.properties['displayName']).toMatchObject({ readOnly: true, examples: ['Ada Lovelace'] })
  expect(creation.properties).not.toHaveProperty('displayName')
  expect(creation.properties['contactType']).toMatchObject({ default: 'person' })
  expect(creation.required ?? []).not.toContain('contactType')
  const items = { type: 'object', required: ['number'], properties: { e164: { readOnly: true } } }
  expect(creation.properties['phones']).toMatchObject({ type: ['array', 'null'], maxItems: 20, items })
})

describe('a contact', () => {
  const { fields } = modules.find(({ key }) => key === 'contacts')!
  const readOnlyKeys = new Set(fields.flatMap(({ fieldKey, readOnly }) => (readOnly ? fieldKey : [])))
  const ada = {
    firstName: 'Ada',
    lastName: 'Lovelace',
    emails: [{ address: 'home@ada.example' }, { address: 'work@ada.example', isPrimary: true }],
    phones: [{ number: '+43 1 234 56 78' }],
  }

  test('is named, and has one primary of each kind', async () => {
    const made = await create('contacts', ada)
    expect(made.displayName).toBe('Ada Lovelace')
    expect(made.fields).toMatchObject({
      contactType: 'person',
      displayName: 'Ada Lovelace',
      primaryEmail: 'work@ada.example',
      primaryPhone: '+4312345678',
      phones: [{ number: '+43 1 234 56 78', e164: '+4312345678', isPrimary: true }],
      tags: [],
      marketingConsent: 'unknown',
    })
  })

  test('follows what is changed, and its history tells it', async () => {
    const made = await create('contacts', ada)
    const changed = await update('contacts', made, { lastName: 'King', emails: [{ address: 'ada@king.example' }] })
    expect([changed.displayName, changed.fields['primaryEmail']]).toEqual(['Ada King', 'ada@king.example'])
    const { json } = await customer.records<{ items: { changes: { field: string; after: unknown }[] }[] }>(
      'GET',
      `/contacts/records/${made.recordId}/history`,
    )
    const told = Object.fromEntries(json.items[0]!.changes.map(({ field: name, after }) => [name, after]))
    expect(told).toMatchObject({ lastName: 'King', displayName: 'Ada King', primaryEmail: 'ada@king.example' })
  })

  test('that is sent again as it was written stays as it is', async () => {
    const made = await create('contacts', ada)
    expect((await update('contacts', made, ada)).revision).toBe(1)
    const isWritable = ([fieldKey]: [string, unknown]) => !readOnlyKeys.has(fieldKey)
    const whole = Object.fromEntries(Object.entries(made.fields).filter(isWritable))
    expect((await update('contacts', made, whole)).revision).toBe(1)
  })

  test('takes nobody’s word for what the service works out', async () => {
    const phones = [{ number: '+43 1 234 56 78', e164: '+15550100' }]
    const made = await create('contacts', { ...ada, phones })
    expect(made.fields['phones']).toMatchObject([{ e164: '+4312345678' }])
    const body = { fields: { ...ada, displayName: 'Countess' } }
    expect(await refusal('POST', '/contacts/records', body)).toEqual([400, 'field_read_only', 'fields.displayName'])
  })

  test.each([
    ['an entry without an address', { emails: [{ label: 'work' }] }, 'field_value_invalid', 'fields.emails[0].address'],
    [
      'an unknown part',
      { phones: [{ number: '+43 1 2345678', colour: 1 }] },
      'unknown_field',
      'fields.phones[0].colour',
    ],
    ['a list that is none', { tags: 'priority' }, 'field_value_invalid', 'fields.tags'],
    [
      'an address that is there twice',
      { emails: [{ address: 'a@ada.example' }, { address: 'A@ada.example' }] },
      'field_value_invalid',
      'fields.emails[1].address',
    ],
    ['no name at all', { firstName: null, lastName: null }, 'required_field_missing', 'fields.lastName'],
  ])('with %s is refused by its place', async (_, more, code, place) => {
    const { emails: __, phones: ___, ...plain } = ada
    expect(await refusal('POST', '/contacts/records', { fields: { ...plain, ...more } })).toEqual([400, code, place])
  })
})

test('an invoice adds up, is final once it is open, and paid when all of it is', async () => {
  const lines = [{ description: 'Repair', quantity: '2', unitPrice: '405.00', taxes: [{ name: 'VAT', percent: '20' }] }]
  const made = await create('invoices', { currency: 'EUR', lines })
  expect(made.fields).toMatchObject({ number: 1, status: 'draft', total: '972.00', amountDue: '972.00' })
  expect(made.displayName).toBe('1')
  const open = await update('invoices', made, { status: 'open' })
  expect(open.fields).toMatchObject({ status: 'open', openedAt: expect.any(String), issuedOn: expect.any(String) })
  const path = `/invoices/records/${made.recordId}`
  const other = { fields: { lines: [{ description: 'Less', unitPrice: '1' }] } }
  expect(await refusal('PATCH', path, other)).toEqual([409, 'field_locked', 'fields.lines'])
  expect((await update('invoices', made, { lines })).revision).toBe(open.revision)
  expect((await update('invoices', made, { amountPaid: '972.00' })).fields).toMatchObject({
    status: 'paid',
    amountDue: '0.00',
    paidAt: expect.any(String),
  })
  expect(await refusal('PATCH', path, { fields: { status: 'draft' } })).toEqual([
    409,
    'state_transition_invalid',
    'fields.status',
  ])
})

test('a ticket goes from state to state, in a batch and by its key too', async () => {
  const made = await create('tickets', { subject: 'No hot water' })
  expect(made.fields).toMatchObject({ status: 'new', priority: 'normal', reopenCount: 0 })
  const solved = await update('tickets', made, { status: 'solved' })
  expect(solved.fields['solvedAt']).not.toBeNull()
  const again = await update('tickets', made, { status: 'open' })
  expect(again.fields).toMatchObject({ solvedAt: null, reopenCount: 1 })
  const items = [
    { operation: 'update', recordId: made.recordId, fields: { status: 'closed' } },
    { operation: 'create', fields: { subject: 'Too late', status: 'nowhere' } },
    { operation: 'upsert', externalKey: 'T-1', fields: { subject: 'Leak' } },
  ]
  const { json } = await customer.records<{ results: { status: number; error?: Problem; record?: Row }[] }>(
    'POST',
    '/tickets/records:batch',
    { items },
  )
  expect(
    json.results.map(({ status, error, record }) => [status, error?.details?.[0], record?.fields['status']]),
  ).toEqual([
    [409, expect.objectContaining({ field: 'fields.status', code: 'state_transition_invalid' }), undefined],
    [400, expect.objectContaining({ field: 'fields.status', code: 'field_value_invalid' }), undefined],
    [201, undefined, 'new'],
  ])
  const byKey = await customer.records<Row>('PUT', '/tickets/records/by-key/T-1', { fields: { status: 'solved' } })
  expect([byKey.status, byKey.json.fields['solvedAt']]).toEqual([200, expect.any(String)])
  await customer.records('DELETE', `/tickets/records/${made.recordId}`)
  const restored = await customer.records<Row>('POST', `/tickets/records/${made.recordId}:restore`)
  expect(restored.json.fields).toMatchObject({ status: 'open', reopenCount: 1 })
})

test('two hundred contacts in one batch are all worked out', async () => {
  const items = Array.from({ length: 200 }, (_, index) => ({
    operation: 'create',
    fields: { firstName: 'Guest', lastName: `No ${index}`, phones: [{ number: `+43 1 99${1000 + index}` }] },
  }))
  const { json } = await customer.records<{ results: { status: number; record: Row }[] }>(
    'POST',
    '/contacts/records:batch',
    { items, atomic: true },
  )
  expect(json.results.map(({ record }) => [record.displayName, record.fields['primaryPhone']])).toEqual(
    items.map((_, index) => [`Guest No ${index}`, `+43199${1000 + index}`]),
  )
})

describe('a model', () => {
  test('may name native objects in roles, references and relationships', async () => {
    const builder = await newModelBuilder(platform)
    const roles = {
      desk: {
        label: 'Desk',
        objects: {
          contacts: { read: true, create: true, fields: { birthday: { read: false, write: false } } },
          deal: { read: true },
        },
      },
    }
    const guests = {
      label: 'Guests',
      inverseLabel: 'Deals',
      cardinality: 'many-to-many' as const,
      from: 'deal',
      to: 'contacts',
      deleteRule: 'unlink' as const,
    }
    const document = dealModel([field('buyer', { dataType: 'reference', references: 'contacts' })], {
      roles,
      relationships: { guests },
    })
    await builder.released(document)
    const { json } = await builder.ask<{ document: typeof document }>('GET', '/model/draft')
    expect(json.document.objects.map(({ objectKey }) => objectKey)).toEqual(['deal'])
    expect(json.document.roles).toEqual(roles)
    const own = await builder.customer()
    const buyer = await own.create('contacts', { lastName: 'Lovelace' })
    await own.create('deal', { name: 'Machine', buyer })
    const found = await own.records<{ records: { expanded: { buyer: Row } }[] }>('POST', '/deal/records/search', {
      filter: { related: 'buyer', some: { field: 'displayName', op: 'startsWith', value: 'love' } },
      expand: ['buyer'],
    })
    expect(found.json.records[0]!.expanded.buyer.displayName).toBe('Lovelace')
    const dangling = await own.records<Problem>('POST', '/deal/records', {
      fields: { name: 'Nobody', buyer: own.organizationId },
    })
    expect(dangling.json.code).toBe('reference_not_found')
  })

  test('may neither define them nor name fields that they do not have', async () => {
    const builder = await newModelBuilder(platform)
    const contacts = { ...dealModel().objects[0]!, objectKey: 'contacts' }
    const roles = {
      desk: { label: 'Desk', objects: { tickets: { read: true, fields: { none: { read: true, write: true } } } } },
    }
    const refused = await builder.publish({ objects: [contacts], roles })
    const told = (refused.json as unknown as Problem).details!.map(({ field: at, code }) => [at, code])
    expect(told).toEqual([
      ['objects/contacts', 'reserved_key'],
      ['roles/desk/objects/tickets/fields/none', 'field_not_found'],
    ])
  })

  test('decides for its roles what they see of native records', async () => {
    const builder = await newModelBuilder(platform)
    const objects = { contacts: { read: true, fields: { displayName: { read: false, write: false } } } }
    await builder.released({ objects: [], roles: { desk: { label: 'Desk', objects } } })
    const own = await builder.customer()
    const { json: organization } = await platform.call<{ dataRoles: { dataRoleId: string }[] }>(
      'GET',
      `/v1/platform/organizations/${own.organizationId}`,
      { token: builder.builder.token },
    )
    const envelope = { dataRoleIds: organization.dataRoles.map(({ dataRoleId }) => dataRoleId), locations: 'all' }
    const { json: desk } = await platform.call<{ token: string }>(
      'POST',
      `/v1/platform/organizations/${own.organizationId}/credentials`,
      {
        token: builder.builder.token,
        body: { kind: 'live', displayName: 'Desk', scopes: [...scopesOfContacts, 'records.write'], envelope },
      },
    )
    const recordId = await own.create('contacts', { lastName: 'Lovelace' })
    const base = `/v1/apps/${builder.saasAppId}/objects`
    const seen = await platform.call<Row>('GET', `${base}/contacts/records/${recordId}`, { token: desk.token })
    expect([seen.json.displayName, seen.json.fields['lastName']]).toEqual([null, 'Lovelace'])
    expect(seen.json.fields).not.toHaveProperty('displayName')
    const denied = await platform.call('POST', `${base}/contacts/records`, {
      token: desk.token,
      body: { fields: { lastName: 'King' } },
    })
    expect(denied.status).toBe(403)
    const { json } = await platform.call<{ objects: { objectKey: string }[] }>('GET', base, { token: desk.token })
    expect(json.objects.map(({ objectKey }) => objectKey)).toEqual(['contacts'])
  })
})

describe('the scopes of a credential', () => {
  const ask = async (scopes: readonly string[]) => {
    const organization = `/v1/platform/organizations/${customer.organizationId}/credentials`
    const body = { kind: 'live', displayName: 'Narrow', scopes }
    const { json } = await platform.call<{ token: string }>('POST', organization, { token: model.builder.token, body })
    return <T>(method: string, path: string, sent?: object) =>
      platform.call<T>(method, `/v1/apps/${model.saasAppId}/objects/contacts/records${path}`, {
        token: json.token,
        ...(sent && { body: sent }),
      })
  }

  test('of records alone show what is common to all records, and nothing of the module', async () => {
    const { recordId } = await create('contacts', { lastName: 'Byron' })
    const narrow = await ask(['records.read', 'records.write'])
    const { json: seen } = await narrow<Row>('GET', `/${recordId}`)
    expect([seen.displayName, seen.fields, seen.revision]).toEqual([null, {}, 1])
    expect((await narrow('POST', '/search', { search: 'Byron' })).json).toMatchObject({ records: [] })
    const filter = { field: 'lastName', op: 'eq', value: 'Byron' }
    expect((await narrow('POST', '/search', { filter })).json.code).toBe('unknown_field')
    for (const [method, path, body] of [
      ['POST', '', { fields: { lastName: 'King' } }],
      ['PATCH', `/${recordId}`, { locationId: null, fields: { lastName: 'King' } }],
      ['DELETE', `/${recordId}`, undefined],
    ] as const) {
      const refused = await narrow(method, path, body)
      expect([refused.status >= 400, (await narrow<Row>('GET', `/${recordId}`)).json.revision]).toEqual([true, 1])
    }
  })

  test('of the module open its fields, for reading or for writing', async () => {
    const { recordId } = await create('contacts', { lastName: 'Byron' })
    const reader = await ask(scopesOfContacts)
    expect((await reader<Row>('GET', `/${recordId}`)).json.fields['lastName']).toBe('Byron')
    const writer = await ask(['records.read', 'records.write', 'modules.contacts.write'])
    const { json } = await writer<Row>('PATCH', `/${recordId}`, { fields: { lastName: 'King' } })
    expect([json.revision, json.displayName]).toEqual([2, 'King'])
  })
})

describe('an application of an earlier version', () => {
  test('gets what has come since with the next start of the service, and keeps its records', async () => {
    const { appId, organizations } = await createTenant(platform.db.database, {
      modules: older,
      organizations: { a: { credentials: { live: {} } } },
    })
    const { token } = organizations.a.credentials.live
    const ask = <T>(method: string, path: string, body?: object) =>
      platform.call<T>(method, `/v1/apps/${appId}/objects${path}`, { token, ...(body && { body }) })
    const fields = { lastName: 'Lovelace', companyName: 'Northwind Traders' }
    const { json: ada } = await ask<Row>('POST', '/contacts/records', { fields })
    expect(ada.displayName).toBe('Lovelace')
    expect((await ask('POST', '/projects/records', { fields: { name: 'Engine' } })).status).toBe(404)

    await upgradeInTwoProcesses()

    const { json: list } = await ask<{ objects: { objectKey: string; label: string }[] }>('GET', '')
    expect(list.objects.map(({ label }) => label)).toEqual(expect.arrayContaining(['Contact', 'Project']))
    const { json: acme } = await ask<Row>('POST', '/companies/records', { fields: { name: 'Acme' } })
    const more = { jobTitle: 'Countess', companyId: acme.recordId }
    const { json: changed } = await ask<Row>('PATCH', `/contacts/records/${ada.recordId}`, { fields: more })
    expect(changed.fields).toMatchObject({ ...fields, ...more, displayName: 'Lovelace' })
    expect((await ask('POST', '/tickets/records', { fields: { subject: 'Cold', status: 'onHold' } })).status).toBe(201)
    expect((await ask('POST', '/projects/records', { fields: { name: 'Engine' } })).status).toBe(201)
    await eventually(async () => {
      const { json } = await ask<{ fields: { fieldKey: string; indexState: string }[] }>('GET', '/contacts/schema')
      return json.fields.some(({ fieldKey, indexState }) => fieldKey === 'lastName' && indexState === 'ready')
    })
    await eventually(async () => {
      const { json } = await ask<{ records: Row[] }>('POST', '/contacts/records/search', { search: 'northwind' })
      return json.records.some(({ recordId }) => recordId === ada.recordId)
    })
  })

  test('keeps an object of its own that a module is called like, and goes without that module', async () => {
    const contacts = { ...dealModel().objects[0]!, objectKey: 'contacts', label: 'Own contact' }
    const tenant = await createTenant(platform.db.database, {
      model: { objects: [contacts] },
      organizations: { a: { credentials: { live: {} } } },
    })
    await upgradeInTwoProcesses()
    const { json } = await platform.call<{ objects: { objectKey: string; label: string; kind: string }[] }>(
      'GET',
      `/v1/apps/${tenant.appId}/objects`,
      { token: tenant.organizations.a.credentials.live.token },
    )
    expect(json.objects).toHaveLength(modules.length)
    expect(json.objects.find(({ objectKey }) => objectKey === 'contacts')).toMatchObject({ label: 'Own contact' })
    const { json: tickets } = await platform.call<{ fields: { fieldKey: string }[] }>(
      'GET',
      `/v1/apps/${tenant.appId}/objects/tickets/schema`,
      { token: tenant.organizations.a.credentials.live.token },
    )
    const keys = tickets.fields.map(({ fieldKey }) => fieldKey)
    expect([keys.includes('companyId'), keys.includes('contactId')]).toEqual([true, false])
    await upgradeInTwoProcesses()
    const { json: again } = await platform.call('GET', `/v1/apps/${tenant.appId}/objects`, {
      token: tenant.organizations.a.credentials.live.token,
    })
    expect(again).toEqual(json)
  })
})

/** The modules as an earlier version may have had them: fewer objects, fields, options, indexes and words to find. */
const older = versioned(
  nativeObjects.objects
    .filter(({ objectKey }) => objectKey !== 'projects')
    .map((object) => ({
      ...object,
      label: `Old ${object.label}`,
      fields: object.fields.filter(wasThere).map((one) => ({
        ...one,
        indexed: one.indexed === true && one.fieldKey !== 'lastName',
        searchable: one.searchable === true && one.fieldKey !== 'companyName',
        ...(one.options && { options: one.options.filter(({ value }) => value !== 'onHold') }),
      })),
    })),
)

function wasThere({ fieldKey, references }: NativeField): boolean {
  return references !== 'projects' && !['jobTitle', 'companyId'].includes(fieldKey)
}

async function upgradeInTwoProcesses(): Promise<void> {
  const processes = await Promise.all([platform.startAnother(), platform.startAnother()])
  for (const { service } of processes) service.nativeUpgrade.start()
  await Promise.all(processes.map(({ service }) => service.nativeUpgrade.idle()))
}
