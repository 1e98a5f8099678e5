import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Exchange, exchangeOf } from '../../../test/support/exchange.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

/** Imports and exports of native modules: contacts with their lists, and what an export makes of them and an import takes back. */
let service: TestService
let contacts: Exchange

interface Contact {
  readonly displayName: string
  readonly emails: readonly { readonly address: string; readonly label?: string | null; readonly isPrimary: boolean }[]
  readonly phones: readonly { readonly number: string; readonly e164: string | null; readonly isPrimary: boolean }[]
  readonly primaryEmail: string | null
  readonly tags: readonly string[]
  readonly externalKey: string | null
}

beforeAll(async () => {
  service = await startTestService({ modules: true })
  contacts = exchangeOf(service, '/modules/contacts', service.app.organizations.a.credentials.live)
})
afterAll(() => service.stop())

async function listed(search: string, token = service.app.organizations.a.credentials.live.token): Promise<Contact[]> {
  const path = `/v1/apps/${service.app.appId}/modules/contacts?search=${search}&sort=created_asc`
  const { json } = await service.call<{ items: Contact[] }>('GET', path, { token })
  return json.items
}

test('contacts come with their addresses and numbers, written plainly or as JSON', async () => {
  const ended = await contacts.import(
    [
      'lastName,emails,phones,externalKey',
      'Nobelova,ada@nobelova.example; work@nobelova.example,+43 1 234 56 78,n-1',
      `Nobelova,"[{""address"":""bob@nobelova.example"",""label"":""home""}]","[{""number"":""none""}]",n-2`,
      'Nobelova,no address,,n-3',
    ].join('\n'),
  )
  expect(ended).toMatchObject({ status: 'partially_succeeded', progress: { succeeded: 1, failed: 2 } })
  const errors = await contacts.errors(ended)
  expect(errors.map(({ row, field, code }) => [row, field, code])).toEqual([
    [2, 'phones[0].number', 'field_value_invalid'],
    [3, 'emails[0].address', 'field_value_invalid'],
  ])
  const [ada] = await listed('nobelova')
  expect(ada).toMatchObject({
    emails: [
      { address: 'ada@nobelova.example', isPrimary: true },
      { address: 'work@nobelova.example', isPrimary: false },
    ],
    phones: [{ e164: '+4312345678', isPrimary: true }],
    primaryEmail: 'ada@nobelova.example',
    externalKey: 'n-1',
  })
})

test('the one address and the one number of many files are read into the lists, and refused there', async () => {
  const csv = await contacts.import(
    ['lastName,primaryEmail,primaryPhone', 'Einzel,one@einzel.example,+43 1 234 56 70', 'Einzel,no address,'].join(
      '\n',
    ),
  )
  expect(csv).toMatchObject({ status: 'partially_succeeded', progress: { succeeded: 1, failed: 1 } })
  expect((await contacts.errors(csv)).map(({ row, field }) => [row, field])).toEqual([[2, 'emails[0].address']])
  const mapped = await contacts.import('Name,Mail\nEinzel,two@einzel.example\n', {
    mapping: { Name: 'lastName', Mail: 'primaryEmail' },
  })
  expect(mapped).toMatchObject({ status: 'succeeded' })
  const line = JSON.stringify({ lastName: 'Einzel', primaryEmail: 'three@einzel.example' })
  expect(await contacts.import(line, { format: 'ndjson' })).toMatchObject({ status: 'succeeded' })
  const addresses = ['one', 'two', 'three'].map((name) => `${name}@einzel.example`)
  expect((await listed('einzel')).map((contact) => contact.primaryEmail)).toEqual(addresses)
  expect((await listed('einzel'))[0]!.phones).toMatchObject([{ e164: '+4312345670', isPrimary: true }])
})

test.each(['csv', 'ndjson'])('an export in %s is an import that changes nothing', async (format) => {
  const name = `Round${format}`
  const { appId } = service.app
  const { token } = service.app.organizations.a.credentials.live
  const body = {
    lastName: name,
    emails: [{ address: `${format}@round.example`, label: 'work' }],
    phones: [{ number: '+43 1 234 56 78' }, { number: '+43 664 1234567', label: 'mobile', isPrimary: true }],
    tags: ['a;b', '"quoted"', '=1+1'],
    addresses: [{ label: 'home', line1: '1 Main Street\nBack door', city: 'Vienna', country: 'AT' }],
    externalKey: `round-${format}`,
  }
  const made = await service.call('POST', `/v1/apps/${appId}/modules/contacts`, { token, body })
  expect(made.status, made.text).toBe(201)
  const exported = await contacts.export({ format, search: name })
  expect(exported).toMatchObject({ status: 'succeeded', progress: { total: 1 } })
  const [before] = await listed(name)
  const ended = await contacts.import(exported.text, { format, mode: 'upsert' })
  expect(ended, JSON.stringify(await contacts.errors(ended))).toMatchObject({
    status: 'succeeded',
    result: { created: 0, updated: 1 },
  })
  expect(await listed(name)).toEqual([before])
})

test('the scope of the module is enough, and needed: to begin, to go on, and to download', async () => {
  const { a } = service.app.organizations
  const path = `/v1/apps/${service.app.appId}/modules/contacts:export`
  const answer = await service.call('POST', path, { token: a.credentials.noScopes.token, body: { format: 'csv' } })
  expect(answer.json).toMatchObject({ code: 'scope_missing' })
  const sales = exchangeOf(service, '/modules/contacts', a.users.sales)
  expect(await sales.import('lastName\nSalesmade\n')).toMatchObject({ status: 'succeeded' })
  expect((await sales.export({ search: 'salesmade' })).progress).toMatchObject({ total: 1 })
  const unreadable = exchangeOf(service, '/modules/tasks', a.users.sales)
  expect((await unreadable.begin('export', { body: { format: 'csv' } })).json.code).toBe('object_not_found')
})
