import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuidv7 } from '../src/kernel/ids.ts'
import { operators } from '../src/shared/catalogue/data-types.ts'
import type { RecordView } from '../src/shared/records/record.ts'
import { asAdministrator } from './support/administrator.ts'
import type { Answer, Sent } from './support/http-client.ts'
import { startTestService, type TestService } from './support/service.ts'
import { hiddenFields, testModel } from './support/test-model.ts'

/**
 * Words that nobody else uses are planted where a caller must not look: in another organisation, and in fields that its
 * role may not read. Then the caller does everything that it can. The words must never come back, and answers must not
 * depend on them: the same question about something that never was is answered alike.
 *
 * Organisations `a` and `b` hold the same records, but for hidden fields, which only `a` has filled.
 */
type Organization = TestService['app']['organizations']['a']
type Person = keyof Organization['users'] | 'live' | 'enveloped'

/** In everything that belongs to `b`, and in every hidden value of `a`. */
const foreignWord = 'zqxforeign'
const hiddenWord = 'zqxhidden'

let service: TestService
/** Everything of `b`'s that has a name or an id. */
let foreign: readonly string[]
let foreignRecords: readonly RecordView[]
/** What `a`'s callers were told before `b` had any record. */
let toldBefore: readonly string[]

beforeAll(async () => {
  service = await startTestService({ labels: { b: `${foreignWord} Org`, c: `${foreignWord} Other` } })
  await fill(organizationOf('a'), 'plain', hiddenWord)
  toldBefore = await everythingToldTo('a', everyKind)
  foreignRecords = await fill(organizationOf('b'), foreignWord, undefined)
  const b = organizationOf('b')
  foreign = [
    ...[foreignWord, b.organizationId, b.slug, ...Object.values(b.dataRoles), ...Object.values(b.locations)],
    ...Object.values(b.users).flatMap((user) => [user.userId, user.email, user.keyId]),
    ...Object.values(b.credentials).map((credential) => credential.keyId),
    ...foreignRecords.map((record) => record.recordId),
  ]
})
afterAll(() => service.stop())

function organizationOf(key: 'a' | 'b'): Organization {
  return service.app.organizations[key]
}

function tokenOf(organization: Organization, person: Person): string {
  if (person === 'live' || person === 'enveloped') return organization.credentials[person].token
  return organization.users[person].token
}

const everybody: readonly Person[] = [
  'live',
  'enveloped',
  'owner',
  'sales',
  'salesSouth',
  'support',
  'clerk',
  'outsider',
]

/** One of each kind of rights. */
const everyKind: readonly Person[] = ['live', 'sales', 'support', 'outsider']

function ask<T = Readonly<Record<string, unknown>>>(token: string, method: string, path: string, sent: Sent = {}) {
  return service.call<T>(method, `/v1/apps/${service.app.appId}${path}`, { token, ...sent })
}

/** The same records in each organisation; `word` is in every text, `hidden` in every field that some role may not read. */
async function fill(organization: Organization, word: string, hidden: string | undefined): Promise<RecordView[]> {
  const { users, dataRoles, locations } = organization
  const { token } = users.owner
  const made: RecordView[] = []
  const create = async (objectKey: string, body: object): Promise<RecordView> => {
    const answer = await ask<RecordView>(token, 'POST', `/objects/${objectKey}/records`, { body })
    expect(answer.status, answer.text).toBe(201)
    made.push(answer.json)
    // Two records of one millisecond have no order that two organisations would share.
    await delay(2)
    return answer.json
  }
  const placements = [
    {},
    { ownerUserId: users.sales.userId },
    { dataRoleId: dataRoles['sales'], locationId: locations['north'] },
    { dataRoleId: dataRoles['support'], participants: [users.clerk.userId] },
    { dataRoleId: dataRoles['clerk'] },
    { ownerUserId: users.owner.userId, participants: [users.support.userId] },
  ]
  for (const [n, placement] of placements.entries()) {
    const externalKey = `${word}-key-${n}`
    const company = await create('company', {
      fields: { name: `${word} company ${n}`, domain: `${word}-${n}.example`, employees: n, country: word },
      externalKey,
      ...placement,
    })
    const vault = await create('vault', { fields: { name: `${hiddenWord} vault ${n}`, depth: n }, ...placement })
    const deal = await create('deal', {
      fields: {
        ...{ name: `${word} deal ${n}`, stage: 'open', closeDate: `2026-0${n + 1}-01`, company: company.recordId },
        ...{ notes: `notes of ${word} ${n}`, amount: hidden ? `770077${n}` : null },
      },
      externalKey,
      ...placement,
    })
    await create('specimen', {
      fields: {
        ...{ title: `${word} specimen ${n}`, code: `${word}-${n}`, body: word, email: `${word}${n}@x.example` },
        ...{ site: `https://${word}.example/${n}`, data: { word }, assignee: users.sales.userId, toString: word },
      },
      ...placement,
    })
    const dossier = await create('dossier', {
      fields: {
        ...{ title: `${word} dossier ${n}`, remark: `${word} remark ${n}`, company: company.recordId },
        vaultLink: vault.recordId,
        ...(hidden && {
          hiddenName: `${hidden} name ${6 - n}`,
          hiddenWords: `${hidden} words shared`,
          hiddenCode: `${hidden}-code-${n}`,
          hiddenLink: company.recordId,
          hiddenSum: `880088${n}`,
          hiddenChoice: 'hiddenPick',
        }),
      },
      ...placement,
    })
    // One change of everything, so that histories hold hidden values too.
    for (const [objectKey, record, fields, hiddenChanges] of [
      ['deal', deal, { name: `${word} deal ${n}!` }, { amount: '7700770' }],
      [
        'dossier',
        dossier,
        { title: `${word} dossier ${n}!` },
        { hiddenName: `${hidden} name!`, hiddenWords: `${hidden} more words`, hiddenSum: '8800880', hiddenLink: null },
      ],
    ] as const) {
      const body = { fields: { ...fields, ...(hidden && hiddenChanges) } }
      const changed = await ask(token, 'PATCH', `/objects/${objectKey}/records/${record.recordId}`, { body })
      expect(changed.json['revision']).toBe(2)
    }
    if (n === 3) await ask(token, 'DELETE', `/objects/deal/records/${deal.recordId}`)
  }
  return made
}

/** Questions that name nothing of anybody's, for every object. */
function questions(word: string): [method: string, path: string, body?: object][] {
  const asked: [string, string, object?][] = [
    ['GET', '/objects'],
    ['GET', '/openapi.json'],
  ]
  for (const { objectKey, fields } of testModel.objects) {
    const records = `/objects/${objectKey}/records`
    const search = (body: object) => asked.push(['POST', `${records}/search`, { includeTotal: true, ...body }])
    asked.push(['GET', `/objects/${objectKey}/schema`], ['POST', `${records}/count`])
    asked.push(['POST', `${records}/count`, { includeArchived: true }])
    for (const body of [{}, { pageSize: 2 }, { page: 2, pageSize: 2 }, { includeArchived: true }]) search(body)
    for (const searched of [word, `${word} d`, 'dossier', 'OPEN', '2', '_']) search({ search: searched })
    for (const { fieldKey, dataType } of fields) {
      search({ sort: [`${fieldKey}_desc`, 'created_asc'] })
      search({ filter: { field: fieldKey, op: 'isNotNull' } })
      search({ filter: { field: fieldKey, op: 'ne', value: dataType === 'integer' ? 1 : 'x' } })
      search({ fields: [fieldKey] })
      search({ expand: [fieldKey] })
      search({ filter: { related: fieldKey, some: { field: 'createdAt', op: 'isNotNull' } } })
    }
    for (const sort of ['name_asc', 'updated_desc', 'revision_asc', 'createdAt_desc']) search({ sort })
    for (const field of ['createdAt', 'ownerUserId', 'locationId', 'archivedAt']) {
      search({ filter: { field, op: 'isNotNull' } })
    }
  }
  return asked
}

/** Everything that callers of an organisation are told, without what differs from one time to the next. */
async function everythingToldTo(key: 'a' | 'b', people: readonly Person[], about = '/'): Promise<string[]> {
  const told: string[] = []
  for (const person of people) {
    const token = tokenOf(organizationOf(key), person)
    const asked = questions(key === 'a' ? 'plain' : foreignWord).filter(([, path]) => path.startsWith(about))
    const answers = asked.map(async ([method, path, body]) => {
      const { status, text } = await ask(token, method, path, body ? { body } : {})
      return `${person} ${method} ${path} ${JSON.stringify(body)}: ${status} ${withoutCorrelation(text)}`
    })
    told.push(...(await Promise.all(answers)))
  }
  return told
}

function withoutCorrelation(text: string): string {
  return text.replaceAll(/"correlationId":"[^"]+"/g, '"correlationId":"…"')
}

/** The same without what two organisations cannot share, and what a cursor holds. */
function withoutIds(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, 'id')
    .replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'time')
    .replaceAll(/"nextCursor":"[^"]+"/g, '"nextCursor":"…"')
}

/** Everything that came back since, headers too, but for what the test itself had sent. */
function expectSilence(since: number, words: readonly string[], sent = ''): void {
  const wanted = words.filter((word) => !sent.includes(word)).map((word) => word.toLowerCase())
  expect(service.answers.length).toBeGreaterThan(since)
  for (const { status, headers, text } of service.answers.slice(since)) {
    const all = `${status} ${JSON.stringify(headers)} ${text}`.toLowerCase()
    const found = wanted.filter((word) => all.includes(word))
    if (found.length > 0) expect.fail(`${found.join()} in ${all}`)
  }
}

/** Asks with something that is there, but not for this caller, and with something that never was. */
async function expectSameAnswer(theirs: string, nobodys: string, request: (word: string) => Promise<Answer>) {
  const since = service.answers.length
  const answers: { status: number; text: string; headers: string }[] = []
  for (const word of [nobodys, theirs]) {
    const { status, text, headers } = await request(word)
    const { date: _, 'x-correlation-id': __, 'content-length': ___, ...rest } = headers
    const shown = (value: string) => withoutIds(withoutCorrelation(value.replaceAll(word, 'word')))
    answers.push({ status, text: shown(text), headers: shown(JSON.stringify(rest)) })
  }
  expect(answers[1]).toEqual(answers[0])
  expectSilence(since, [...foreign, hiddenWord], theirs)
}

test("what an organization's callers are told does not change with another organization's records", async () => {
  const since = service.answers.length
  expect(await everythingToldTo('a', everyKind)).toEqual(toldBefore)
  expectSilence(since, foreign)
  expect(toldBefore.join()).toContain('plain')
})

test('its records, history and participants hold nothing of another organization', async () => {
  const since = service.answers.length
  for (const person of everybody) {
    const token = tokenOf(organizationOf('a'), person)
    await ask(token, 'GET', '/auth/context')
    for (const { objectKey } of testModel.objects) {
      const records = `/objects/${objectKey}/records`
      const { json } = await ask<{ records?: RecordView[] }>(token, 'POST', `${records}/search`)
      for (const { recordId } of json.records ?? []) {
        for (const rest of ['', '/history', '/participants']) await ask(token, 'GET', `${records}/${recordId}${rest}`)
      }
    }
  }
  expectSilence(since, foreign)
})

test("another organization's ids, keys, people and words are answered like those of nobody", async () => {
  const b = organizationOf('b')
  const strangers = [
    ...[b.users.owner.userId, b.users.sales.userId, b.dataRoles['sales']!, b.locations['north']!],
    ...foreignRecords.slice(0, 4).map((record) => record.recordId),
  ]
  for (const person of ['live', 'sales', 'clerk'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    const create = (objectKey: string, body: object) => ask(token, 'POST', `/objects/${objectKey}/records`, { body })
    const named = { fields: { name: 'Probe' } }
    for (const id of strangers) {
      const same = (request: (word: string) => Promise<Answer>) => expectSameAnswer(id, uuidv7(Date.now()), request)
      for (const field of ['ownerUserId', 'dataRoleId', 'locationId'])
        await same((word) => create('deal', { ...named, [field]: word }))
      await same((word) => create('deal', { ...named, participants: [word] }))
      await same((word) => create('deal', { fields: { name: 'Probe', company: word } }))
      await same((word) => create('specimen', { fields: { title: 'Probe', assignee: word } }))
      await same((word) => ask(token, 'GET', `/logs/correlations/${word}`))
      for (const field of ['recordId', 'ownerUserId', 'dataRoleId', 'company']) {
        const filter = (word: string) => ({ filter: { field, op: 'eq', value: word }, includeArchived: true })
        await same((word) => ask(token, 'POST', '/objects/deal/records/search', { body: filter(word) }))
        await same((word) => ask(token, 'POST', '/objects/deal/records/count', { body: filter(word) }))
      }
      const items = (word: string) => [
        { operation: 'update', recordId: word, fields: {} },
        { operation: 'archive', recordId: word },
        { operation: 'create', fields: { name: 'Probe', company: word } },
        { operation: 'create', fields: { name: 'Probe' }, ownerUserId: word },
      ]
      for (const atomic of [true, false]) {
        await same((word) =>
          ask(token, 'POST', '/objects/deal/records:batch', { body: { atomic, items: items(word) } }),
        )
      }
    }
    for (const word of [foreignWord, `${foreignWord} deal 1`, 'zqxfor', `${foreignWord}-2.example`]) {
      const nobodys = word.replaceAll('zqx', 'qzx')
      const search = (text: string) => ({ search: text, includeTotal: true, includeArchived: true })
      await expectSameAnswer(word, nobodys, (text) =>
        ask(token, 'POST', '/objects/deal/records/search', { body: search(text) }),
      )
      const filter = (value: string) => ({ filter: { field: 'name', op: 'contains', value } })
      await expectSameAnswer(word, nobodys, (text) =>
        ask(token, 'POST', '/objects/deal/records/count', { body: filter(text) }),
      )
    }
  }
})

test("another organization's external keys and unique values are free", async () => {
  const { token } = organizationOf('a').credentials.live
  await expectSameAnswer(`${foreignWord}-key-1`, 'nobodys-key-1', (key) =>
    ask(token, 'PUT', `/objects/deal/records/by-key/${key}`, { body: { fields: { name: 'Probe' } } }),
  )
  for (const operation of ['create', 'upsert', 'update', 'archive']) {
    await expectSameAnswer(`${foreignWord}-key-2`, `nobodys-key-${operation}`, async (externalKey) => {
      const items = [{ operation, externalKey, fields: { name: 'Probe' } }]
      const answer = await ask(token, 'POST', '/objects/deal/records:batch', { body: { items } })
      await ask(token, 'POST', '/objects/deal/records:batch', {
        body: { items: [{ operation: 'archive', externalKey }] },
      })
      return answer
    })
  }
  await expectSameAnswer(`${foreignWord}-1.example`, 'nobodys-1.example', (domain) =>
    ask(token, 'POST', '/objects/company/records', { body: { fields: { name: 'Probe', domain } } }),
  )
})

test('another organization knows nothing of a request, whatever became of it', async () => {
  const b = organizationOf('b')
  const requests = [
    // Changes: they are all kept. Reads and refusals are sampled, and this file asks for many.
    await ask(tokenOf(b, 'owner'), 'POST', '/objects/company/records', { body: { fields: { name: 'B' } } }),
    await ask(tokenOf(b, 'live'), 'POST', '/objects/deal/records', { body: { fields: { name: 'B' } } }),
  ]
  for (const { correlationId } of requests) {
    expect((await ask(tokenOf(b, 'live'), 'GET', `/logs/correlations/${correlationId}`)).status).toBe(200)
    for (const person of ['live', 'owner', 'support'] as const) {
      const token = tokenOf(organizationOf('a'), person)
      await expectSameAnswer(correlationId, uuidv7(Date.now()), (id) => ask(token, 'GET', `/logs/correlations/${id}`))
    }
  }
})

test('hidden fields, their values and hidden objects are in no answer', async () => {
  const since = service.answers.length
  for (const person of ['support', 'clerk'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    for (const path of [
      '/objects',
      '/openapi.json',
      '/auth/context',
      '/objects/dossier/schema',
      '/objects/deal/schema',
    ]) {
      expect((await ask(token, 'GET', path)).status).toBe(200)
    }
    for (const objectKey of ['dossier', 'deal', 'company']) {
      const records = `/objects/${objectKey}/records`
      const body = { includeArchived: true, ...(objectKey !== 'company' && { expand: ['company'] }) }
      const { json } = await ask<{ records: RecordView[] }>(token, 'POST', `${records}/search`, { body })
      expect(json.records.length).toBeGreaterThan(2)
      for (const { recordId } of json.records) {
        for (const rest of ['', '/history', '/participants', ...(objectKey === 'company' ? [] : ['?expand=company'])]) {
          expect((await ask(token, 'GET', `${records}/${recordId}${rest}`)).status).toBe(200)
        }
      }
    }
  }
  expectSilence(since, [hiddenWord, 'hidden', '770077', '880088', '"vault"', '"amount":'])
})

test('hidden values change nothing of what a role is told', async () => {
  // `b` has the same records with the hidden fields empty. What the tests before this one wrote holds no dossier.
  const ofDossiers = async (key: 'a' | 'b') =>
    (await everythingToldTo(key, ['support', 'clerk'], '/objects/dossier/')).map((line) =>
      withoutIds(line).replaceAll(/plain|zqxforeign/g, 'word'),
    )
  const told = await ofDossiers('a')
  expect(told).toEqual(await ofDossiers('b'))
  expect(told.length).toBeGreaterThan(100)
})

test('who writes a record without seeing all of it is answered with what it sees', async () => {
  const since = service.answers.length
  const clerk = tokenOf(organizationOf('a'), 'clerk')
  const { json } = await ask<{ records: RecordView[] }>(clerk, 'POST', '/objects/dossier/records/search')
  for (const { recordId, displayName } of json.records) {
    const path = `/objects/dossier/records/${recordId}`
    const body = { fields: { remark: `plain ${recordId}` }, externalKey: recordId }
    const items = [{ operation: 'update', recordId, fields: { remark: null } }]
    for (const answer of [
      await ask<RecordView>(clerk, 'PATCH', path, { body }),
      await ask<RecordView>(clerk, 'PUT', `/objects/dossier/records/by-key/${recordId}`, { body: { fields: {} } }),
      await ask<RecordView>(clerk, 'DELETE', path),
      await ask<RecordView>(clerk, 'POST', `${path}:restore`),
      await ask<RecordView>(clerk, 'POST', '/objects/dossier/records:batch', { body: { items } }),
    ]) {
      expect(answer.status, answer.text).toBe(200)
    }
    expect(displayName).toBe(null)
  }
  expect(json.records.length).toBeGreaterThan(2)
  expectSilence(since, [hiddenWord, 'hidden', '880088', '"vault"'])
})

test('a hidden field is an unknown field, wherever it is named', async () => {
  const named = [...hiddenFields.map((field) => ['dossier', field] as const), ['deal', 'amount'] as const]
  for (const person of ['support', 'clerk'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    for (const [objectKey, hiddenField] of named) {
      const records = `/objects/${objectKey}/records`
      const same = (request: (field: string) => Promise<Answer>) =>
        expectSameAnswer(hiddenField, 'nothingAtAll', request)
      const post = (path: string, body: object) => ask(token, 'POST', `${records}${path}`, { body })
      const search = (body: object) => post('/search', body)
      for (const op of operators) {
        const value = /^(in|notIn|between|containsA)/.test(op) ? ['7', '8'] : /Null$/.test(op) ? undefined : '7'
        await same((field) => search({ filter: { field, op, value } }))
      }
      await same((field) => post('/count', { filter: { not: { or: [{ field, op: 'eq', value: 'x' }] } } }))
      await same((field) => search({ filter: { related: 'company', some: { field, op: 'eq', value: 'x' } } }))
      for (const direction of ['asc', 'desc', 'up']) {
        await same((field) => search({ sort: `${field}_${direction}` }))
        await same((field) => search({ sort: ['created_asc', `${field}_${direction}`] }))
      }
      await same((field) => search({ expand: [field] }))
      await same((field) => search({ fields: [field] }))
      await same((field) => search({ filter: { related: field, some: { field: 'name', op: 'eq', value: 'x' } } }))
      const { json } = await ask<{ records: RecordView[] }>(token, 'POST', `${records}/search`)
      const { recordId } = json.records[0]!
      for (const name of ['fields', 'expand']) {
        await same((field) => ask(token, 'GET', `${records}/${recordId}?${name}=${field}`))
      }
      for (const value of ['x', null, { a: 1 }]) {
        const fields = (field: string) => ({ fields: { [field]: value } })
        await same((field) => post('', fields(field)))
        await same((field) => ask(token, 'PATCH', `${records}/${recordId}`, { body: fields(field) }))
        await same((field) => ask(token, 'PUT', `${records}/by-key/nobodys`, { body: fields(field) }))
        for (const operation of ['create', 'update', 'upsert']) {
          const item = { operation, ...(operation === 'update' ? { recordId } : { externalKey: 'nobodys' }) }
          await same((field) => post(':batch', { items: [{ ...item, ...fields(field) }] }))
        }
      }
    }
  }
})

test('words in hidden fields find nothing', async () => {
  for (const person of ['support', 'clerk'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    for (const word of [
      hiddenWord,
      `${hiddenWord} words`,
      'zqxhid',
      'hiddenLabel',
      'hiddenPick',
      `plain ${hiddenWord}`,
    ]) {
      const nobodys = word.replace('zqxhid', 'qzxhid').replace('hiddenL', 'nothingL').replace('hiddenP', 'nothingP')
      for (const path of ['search', 'count']) {
        const body = (search: string) => ({ search, includeArchived: true })
        await expectSameAnswer(word, nobodys, (text) =>
          ask(token, 'POST', `/objects/dossier/records/${path}`, { body: body(text) }),
        )
      }
    }
  }
  const found = await ask<{ records: RecordView[] }>(
    tokenOf(organizationOf('a'), 'owner'),
    'POST',
    '/objects/dossier/records/search',
    {
      body: { search: `${hiddenWord} words plain` },
    },
  )
  expect(found.json.records).toHaveLength(6)
})

test('an object that a role may not read does not exist', async () => {
  const { json } = await ask<{ records: RecordView[] }>(
    tokenOf(organizationOf('a'), 'owner'),
    'POST',
    '/objects/vault/records/search',
  )
  const { recordId } = json.records[0]!
  for (const person of ['support', 'clerk', 'outsider'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    const same = (request: (word: string) => Promise<Answer>) => expectSameAnswer('vault', 'wault', request)
    await same((key) => ask(token, 'GET', `/objects/${key}/schema`))
    for (const [method, rest] of [
      ['POST', 'records/search'],
      ['POST', 'records/count'],
      ['POST', 'records'],
      ['GET', `records/${recordId}`],
      ['GET', `records/${recordId}/history`],
      ['GET', `records/${recordId}/participants`],
      ['PATCH', `records/${recordId}`],
      ['DELETE', `records/${recordId}`],
      ['POST', `records/${recordId}:restore`],
      ['PUT', `records/${recordId}/participants`],
      ['PUT', 'records/by-key/anything'],
      ['POST', 'records:batch'],
    ] as const) {
      const body = rest.endsWith('participants')
        ? { participants: [] }
        : rest.endsWith('batch')
          ? { items: [{ operation: 'create' }] }
          : { fields: {} }
      const hasBody = method !== 'GET' && method !== 'DELETE' && !/search|count|restore/.test(rest)
      await same((key) => ask(token, method, `/objects/${key}/${rest}`, hasBody ? { body } : {}))
    }
  }
  // A reference to it can be read; whether something stands at its end cannot be told.
  const token = tokenOf(organizationOf('a'), 'clerk')
  await expectSameAnswer(recordId, uuidv7(Date.now()), (vaultLink) =>
    ask(token, 'POST', '/objects/dossier/records', { body: { fields: { title: 'Probe', vaultLink } } }),
  )
})

test('records beyond the envelope are answered like records that never were', async () => {
  const { token: owner } = organizationOf('a').users.owner
  const { userId } = organizationOf('a').users.owner
  const make = async (objectKey: string, body: object) => {
    const answer = await ask<RecordView>(owner, 'POST', `/objects/${objectKey}/records`, {
      body: { ...body, ownerUserId: userId },
    })
    expect(answer.status, answer.text).toBe(201)
    return answer.json.recordId
  }
  const company = await make('company', { fields: { name: `${hiddenWord} private` }, externalKey: 'private-key' })
  const deal = await make('deal', { fields: { name: `${hiddenWord} private` }, externalKey: 'private-key' })
  for (const person of ['sales', 'support', 'clerk', 'outsider', 'enveloped'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    const same = (theirs: string, request: (word: string) => Promise<Answer>) =>
      expectSameAnswer(theirs, uuidv7(Date.now()), request)
    for (const [method, rest, body] of [
      ['GET', ''],
      ['GET', '/history'],
      ['GET', '/participants'],
      ['PATCH', '', { fields: {} }],
      ['DELETE', ''],
      ['POST', ':restore'],
      ['PUT', '/participants', { participants: [] }],
    ] as const) {
      await same(deal, (id) => ask(token, method, `/objects/deal/records/${id}${rest}`, body ? { body } : {}))
    }
    await same(company, (id) =>
      ask(token, 'POST', '/objects/deal/records', { body: { fields: { name: 'Probe', company: id } } }),
    )
    const filter = (value: string) => ({ filter: { field: 'company', op: 'eq', value }, includeTotal: true })
    await same(company, (id) => ask(token, 'POST', '/objects/deal/records/search', { body: filter(id) }))
    for (const operation of ['update', 'archive']) {
      const items = (externalKey: string) => [{ operation, externalKey }]
      await same('private-key', (key) =>
        ask(token, 'POST', '/objects/deal/records:batch', { body: { items: items(key) } }),
      )
    }
    await expectSameAnswer(hiddenWord, 'qzxnobody', (search) =>
      ask(token, 'POST', '/objects/deal/records/search', { body: { search, includeTotal: true } }),
    )
  }
  // A caller who could not create it either learns nothing of a key that is taken.
  for (const person of ['support', 'outsider'] as const) {
    const token = tokenOf(organizationOf('a'), person)
    for (const body of [{ fields: { name: 'x' } }, { fields: {} }, { fields: { name: 'x' }, expectedRevision: 1 }]) {
      await expectSameAnswer('private-key', 'nobodys-key', (key) =>
        ask(token, 'PUT', `/objects/deal/records/by-key/${key}`, { body }),
      )
      await expectSameAnswer('private-key', 'nobodys-key', (externalKey) =>
        ask(token, 'POST', '/objects/deal/records:batch', {
          body: { items: [{ operation: 'upsert', externalKey, ...body }] },
        }),
      )
    }
  }
})

test('a conflict over a hidden unique value does not name its field', async () => {
  const owner = tokenOf(organizationOf('a'), 'owner')
  const clerk = tokenOf(organizationOf('a'), 'clerk')
  const fields = { title: 'Twin', hiddenCode: `${hiddenWord}-twin` }
  const first = await ask<RecordView>(owner, 'POST', '/objects/dossier/records', { body: { fields } })
  await ask(owner, 'DELETE', `/objects/dossier/records/${first.json.recordId}`)
  expect((await ask(owner, 'POST', '/objects/dossier/records', { body: { fields } })).status).toBe(201)
  const since = service.answers.length
  const restored = await ask(clerk, 'POST', `/objects/dossier/records/${first.json.recordId}:restore`)
  expect(restored.json.code).toBe('duplicate_value')
  expectSilence(since, ['hidden'])
  const told = await ask(owner, 'POST', `/objects/dossier/records/${first.json.recordId}:restore`)
  expect(told.json.details?.[0]?.field).toBe('fields.hiddenCode')
})

test('nothing of a value is in the log, the metrics or the diagnostics', async () => {
  const { token } = organizationOf('b').users.owner
  // Refusals of every kind that have a value of somebody's in their cause.
  const wrongs = [
    ['POST', '/objects/company/records', { fields: { name: foreignWord, domain: `${foreignWord}-1.example` } }],
    ['POST', '/objects/company/records', { fields: { name: [foreignWord] } }],
    ['POST', '/objects/company/records', { fields: { name: 'x' }, externalKey: `${foreignWord}-key-1` }],
    ['POST', '/objects/company/records/search', { filter: { field: 'employees', op: 'eq', value: foreignWord } }],
    ['POST', '/objects/company/records/search', { cursor: foreignWord }],
    [
      'POST',
      '/objects/specimen/records',
      { fields: { title: 'x', code: foreignWord, email: foreignWord, day: foreignWord } },
    ],
  ] as const
  for (const [method, path, body] of wrongs) {
    expect((await ask(token, method, path, { body })).status).toBeGreaterThanOrEqual(400)
  }
  await service.close()
  const kept = await asAdministrator(service.db.connection, (admin) =>
    admin.query<{ row: string }>('SELECT row_to_json(l)::text AS row FROM portico.request_log l'),
  )
  expect(kept.rows.length).toBeGreaterThan(1000)
  expect(service.logLines.length).toBeGreaterThan(1000)
  for (const line of [...service.logLines, ...kept.rows.map(({ row }) => row)]) {
    expect(line.toLowerCase()).not.toMatch(/zqx(foreign|hidden)|hiddenpick|@/)
    expect(line).not.toMatch(/ptc_(live|dat|draft|bld|drt)_/)
  }
})
