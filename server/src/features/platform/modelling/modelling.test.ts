import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../../test/support/administrator.ts'
import {
  type Customer,
  dealModel,
  field,
  type ModelBuilder,
  newModelBuilder,
} from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import { applyModel } from '../../../shared/modelling/apply.ts'
import type { FieldDocument, ModelDocument } from '../../../shared/modelling/document.ts'

let platform: Platform
let model: ModelBuilder
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())
beforeEach(async () => {
  model = await newModelBuilder(platform)
})

interface Draft {
  readonly document: ModelDocument
  readonly revision: number
  readonly basedOnRelease: number
}
interface Release {
  readonly releaseNumber: number
  readonly summary: string
  readonly rolledBackTo: number | null
  readonly document: ModelDocument
}

const draft = async () => (await model.ask<Draft>('GET', '/model/draft')).json
const validity = async () =>
  (
    await model.ask<{ valid: boolean; issues: { path: string; code: string; message: string }[] }>(
      'POST',
      '/model/draft:validate',
    )
  ).json
const schemaOf = (customer: Customer, objectKey = 'deal') =>
  customer.records<{ fields: { fieldKey: string; indexState: string }[]; searchState: string }>(
    'GET',
    `/${objectKey}/schema`,
  )
const keysOf = async (customer: Customer) => (await schemaOf(customer)).json.fields.map(({ fieldKey }) => fieldKey)
const search = async (customer: Customer, body: object) =>
  (await customer.records<{ records: { recordId: string }[] }>('POST', '/deal/records/search', body)).json.records

async function eventually(what: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + 10_000
  while (!(await what())) {
    if (Date.now() > until) throw new Error('It did not come to that in time.')
    await pause(20)
  }
}

describe('a draft', () => {
  test('collects what nobody sees, is compared, published, and gone', async () => {
    await model.released(dealModel())
    const customer = await model.customer()
    const first = await draft()
    expect([first.revision, first.basedOnRelease]).toEqual([0, 1])

    const add = await model.ask<Draft>('PUT', '/model/draft/objects/deal/fields/amount', {
      field: { label: 'Amount', dataType: 'decimal', indexed: true },
      expectedRevision: 0,
    })
    expect([add.status, add.json.revision, add.headers['etag']]).toEqual([200, 1, '"1"'])
    await model.ask('PUT', '/model/draft/objects/company', {
      object: { label: 'Company', pluralLabel: 'Companies', nameField: 'name', fields: [field('name')] },
    })
    await model.ask('PUT', '/model/draft/roles/sales', {
      part: { label: 'Sales', objects: { deal: { read: true, update: false } }, actions: ['close-deal'] },
    })
    const relationship = {
      ...{ label: 'Deals', inverseLabel: 'Company', cardinality: 'one-to-many', deleteRule: 'restrict' },
      ...{ from: 'company', to: 'deal' },
    }
    await model.ask('PUT', '/model/draft/relationships/company-deals', { part: relationship })
    const last = await model.ask<Draft>('PUT', '/model/draft/locations/north', { part: { label: 'North' } })
    expect(last.json.revision).toBe(5)
    expect(await keysOf(customer)).toEqual(['name'])
    expect((await schemaOf(customer, 'company')).status).toBe(404)

    expect(await validity()).toEqual({ valid: true, issues: [] })
    const { json: diff } = await model.ask<{ changes: { kind: string; path: string }[]; destructive: boolean }>(
      'GET',
      '/model/draft/diff',
    )
    expect(diff.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      'object_added objects/company',
      'field_added objects/deal/fields/amount',
      'relationship_added relationships/company-deals',
      'role_added roles/sales',
      'location_added locations/north',
    ])
    expect(diff.destructive).toBe(false)

    const published = await model.ask<Release>('POST', '/model/draft:publish', { note: 'Amounts', expectedRevision: 5 })
    expect([published.status, published.json.releaseNumber]).toEqual([201, 2])
    expect(published.json.summary).toContain('field deal.amount added')
    expect(published.json.document).toEqual((await draft()).document)
    expect((await draft()).revision).toBe(0)
    expect(await keysOf(customer)).toEqual(['name', 'amount'])
    expect((await schemaOf(customer, 'company')).status).toBe(200)
    const { json: list } = await model.ask<{ items: { releaseNumber: number; note: string }[] }>(
      'GET',
      '/model/releases',
    )
    expect(list.items.map(({ releaseNumber, note }) => [releaseNumber, note])).toEqual([
      [2, 'Amounts'],
      [1, ''],
    ])
  })

  test('is guarded by its revision, and can be discarded', async () => {
    await model.ask('PUT', '/model/draft', { document: dealModel() })
    for (const [method, path, body] of [
      ['PUT', '/model/draft', { document: dealModel(), expectedRevision: 0 }],
      ['PUT', '/model/draft/roles/r', { part: { label: 'R', objects: {} }, expectedRevision: 7 }],
      ['DELETE', '/model/draft?expectedRevision=3', undefined],
      ['POST', '/model/draft:publish', { expectedRevision: 2 }],
    ] as const) {
      const answer = await model.ask(method, path, body)
      expect([answer.status, answer.json.code, answer.headers['etag']]).toEqual([409, 'revision_conflict', '"1"'])
    }
    expect((await model.ask<Draft>('DELETE', '/model/draft?expectedRevision=1')).json).toMatchObject({ revision: 0 })
    expect((await draft()).document.objects).toEqual([])
    expect((await model.ask('POST', '/model/draft:publish')).json.code).toBe('model_unchanged')
  })

  test('takes parts away, with the rights of roles to them', async () => {
    const fields = { amount: { read: false, write: false } }
    const roles = { sales: { label: 'Sales', objects: { deal: { read: true, fields } } } }
    await model.released(dealModel([field('amount')], { roles }))
    const removed = await model.ask<Draft>('DELETE', '/model/draft/objects/deal/fields/amount')
    expect(removed.json.document.roles!['sales']!.objects).toEqual({ deal: { read: true } })
    const gone = await model.ask<Draft>('DELETE', '/model/draft/objects/deal')
    expect(gone.json.document).toMatchObject({ objects: [], roles: { sales: { objects: {} } } })
    expect((await model.ask<Draft>('DELETE', '/model/draft/roles/sales')).json.document.roles).toEqual({})
    expect((await model.ask('DELETE', '/model/draft/roles/sales')).json.code).toBe('model_part_not_found')
    expect((await model.ask('DELETE', '/model/draft/objects/deal')).json.code).toBe('object_not_found')
    expect((await model.ask('DELETE', '/model/draft/objects/deal/fields/x')).json.code).toBe('object_not_found')
  })

  test('may be wrong, says where, and is not published then', async () => {
    const wrong = dealModel([field('owner', { dataType: 'reference', references: 'nobody' })], {
      roles: { r: { label: 'R', objects: { ghost: { read: true } } } },
    })
    const refused = await model.publish(wrong)
    expect([refused.status, refused.json.code]).toEqual([422, 'model_invalid'])
    expect(refused.json.details!.map(({ field: path, code }) => [path, code])).toEqual([
      ['objects/deal/fields/owner', 'reference_invalid'],
      ['roles/r/objects/ghost', 'object_not_found'],
    ])
    const { valid, issues } = await validity()
    expect([valid, issues.map(({ path }) => path)]).toEqual([
      false,
      ['objects/deal/fields/owner', 'roles/r/objects/ghost'],
    ])
    const badPart = await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North', objects: {} } })
    expect([badPart.status, badPart.json.details?.[0]?.field]).toEqual([400, 'part.objects'])
  })

  test('that was begun before another release is not published over it', async () => {
    await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North' } })
    await applyModel(platform.db.database, model.saasAppId, dealModel())
    expect((await model.ask('POST', '/model/draft:publish')).json.code).toBe('draft_outdated')
    await model.released(dealModel([], { locations: { north: { label: 'North' } } }))
  })
})

describe('what data stands against is refused, with the number of rows in every organization', () => {
  const options = (...values: string[]) => ({
    dataType: 'select' as const,
    options: values.map((value) => ({ value, label: value })),
  })
  const cases: readonly (readonly [
    what: string,
    before: FieldDocument,
    after: FieldDocument[],
    code: string,
    rows: number,
  ])[] = [
    ['another type', field('x'), [field('x', { dataType: 'integer' })], 'data_type_change', 3],
    ['required', field('x'), [field('x', { required: true })], 'rows_without_value', 2],
    ['a new field that is required', field('x'), [field('x'), field('y', { required: true })], 'rows_without_value', 5],
    ['unique', field('x'), [field('x', { unique: true })], 'duplicate_values', 2],
    ['an option less', field('x', options('A', 'B')), [field('x', options('B'))], 'option_in_use', 2],
    ['a field less', field('x'), [], 'data_would_be_lost', 3],
    ['an index on long text', field('x'), [field('x', { indexed: true })], 'values_too_long', 0],
  ]
  test.each(cases)('%s', async (_what, before, after, code, rows) => {
    await model.released(dealModel([before]))
    const [one, other] = [await model.customer(), await model.customer()]
    // `A` twice in one organization, once as `B` in the other; two records without a value.
    for (const x of ['A', 'A', null]) await one.create('deal', { name: 'D', x })
    for (const x of ['B', null]) await other.create('deal', { name: 'D', x })
    const long = code === 'values_too_long'
    if (long) await other.create('deal', { name: 'D', x: 'x'.repeat(256) })
    const refused = await model.publish(dealModel(after))
    expect([refused.status, refused.json.code], refused.text).toEqual([409, 'model_change_refused'])
    const [detail] = refused.json.details!
    expect(detail!.code).toBe(code)
    if (code !== 'data_type_change') expect(detail!.message).toContain(`${long ? 1 : rows} records`)
    expect((await validity()).issues.map((issue) => issue.code)).toEqual([code])
    const { json } = await model.ask<{ changes: { rowsAtStake: number }[] }>('GET', '/model/draft/diff')
    expect(json.changes[0]!.rowsAtStake).toBe(long ? 1 : rows)
    expect((await schemaOf(one)).json.fields).toHaveLength(2)
  })

  test('an object with records, and roles that somebody holds', async () => {
    const roles = { sales: { label: 'Sales', objects: {} } }
    await model.released(dealModel([], { roles }))
    const customer = await model.customer()
    await customer.create('deal', { name: 'Kept' })
    const { dataRoles } = (
      await platform.call<{ dataRoles: { dataRoleId: string }[] }>(
        'GET',
        `/v1/platform/organizations/${customer.organizationId}`,
        { token: model.builder.token },
      )
    ).json
    const { dataRoleId } = dataRoles[0]!
    await customer.records('POST', '/deal/records', { fields: { name: 'Of the role' }, dataRoleId })
    const refused = await model.publish({ objects: [], roles: {} })
    expect(
      refused.json.details!.map(({ field: path, code, message }) => [path, code, /\d+/.exec(message)![0]]),
    ).toEqual([
      ['roles/sales', 'role_in_use', '1'],
      ['objects/deal', 'data_would_be_lost', '2'],
    ])
  })
})

describe('what goes', () => {
  const archived = { archived: true }

  test('a field is hidden with its values, comes back with them, and goes for good when that is confirmed', async () => {
    await model.released(dealModel([field('x', { searchable: true })]))
    const customer = await model.customer()
    const recordId = await customer.create('deal', { name: 'One', x: 'needle' })
    await model.released(dealModel([field('x', { searchable: true, ...archived })]))
    expect(await keysOf(customer)).toEqual(['name'])
    const hidden = await customer.records('GET', `/deal/records/${recordId}`)
    expect(hidden.json['fields']).toEqual({ name: 'One' })
    await eventually(async () => (await search(customer, { search: 'needle' })).length === 0)
    await model.released(dealModel([field('x', { searchable: true })]))
    const shown = await customer.records('GET', `/deal/records/${recordId}`)
    expect(shown.json['fields']).toEqual({ name: 'One', x: 'needle' })
    await eventually(async () => (await search(customer, { search: 'needle' })).length === 1)

    await model.released(dealModel([field('x', archived)]))
    const unconfirmed = await model.publish(dealModel())
    expect(unconfirmed.json.details![0]).toMatchObject({ code: 'data_loss_unconfirmed' })
    expect((await model.ask<{ destructive: boolean }>('GET', '/model/draft/diff')).json.destructive).toBe(true)
    expect((await model.ask('POST', '/model/draft:publish', { confirmDataLoss: true })).status).toBe(201)
    await model.released(dealModel([field('x')]))
    const anew = await customer.records('GET', `/deal/records/${recordId}`)
    expect(anew.json['fields']).toEqual({ name: 'One', x: null })
  })

  test('an object too, with everything that is kept of its records', async () => {
    const object = { ...dealModel().objects[0]! }
    await model.released({ objects: [object] })
    const customer = await model.customer()
    await customer.create('deal', { name: 'One' })
    await model.released({ objects: [{ ...object, ...archived }] })
    expect((await schemaOf(customer)).status).toBe(404)
    expect((await model.publish({ objects: [] }, { confirmDataLoss: true })).status).toBe(201)
    const left = await platform.db.database.inOrganization(customer.organizationId, (tx) =>
      tx.rows(sql`SELECT FROM portico.record_directory WHERE organization_id = ${customer.organizationId}`),
    )
    expect(left).toEqual([])
    await model.released({ objects: [object] })
    expect(await search(customer, {})).toEqual([])
  })

  test('objects that refer to each other go together, and names that JavaScript knows are names', async () => {
    const link = (references: string) => field('link', { dataType: 'reference', references, indexed: true })
    const one = { ...dealModel([link('constructor'), field('who', { dataType: 'user' })]).objects[0]! }
    const other = { ...dealModel([link('deal'), field('toString')]).objects[0]!, objectKey: 'constructor' }
    const roles = { constructor: { label: 'C', objects: { constructor: { read: true } } } }
    await model.released({ objects: [one, other], roles })
    const customer = await model.customer()
    expect((await schemaOf(customer, 'constructor')).status).toBe(200)
    await model.released({ objects: [] })
    expect((await schemaOf(customer)).status).toBe(404)
  })

  test('what holds nothing goes at once', async () => {
    await model.released({
      objects: [...dealModel([field('x')]).objects, { ...dealModel().objects[0]!, objectKey: 'e' }],
    })
    await (await model.customer()).create('deal', { name: 'One' })
    await model.released(dealModel())
  })
})

test('labels, options, limits and indexes change under the records that there are', async () => {
  const select = (...labels: string[]) => ({
    dataType: 'select' as const,
    searchable: true,
    options: labels.map((label, index) => ({ value: `v${index}`, label })),
  })
  await model.released(dealModel([field('x'), field('stage', select('Open'))]))
  const customer = await model.customer()
  await customer.create('deal', { name: 'One', x: 'much too long', stage: 'v0' })
  const changed = dealModel([
    field('stage', select('Started', 'Won')),
    field('x', { label: 'Ex', indexed: true, searchable: true, validation: { maxLength: 5 } }),
  ])
  await model.released(changed)
  await eventually(async () => {
    const { fields, searchState } = (await schemaOf(customer)).json
    return searchState === 'ready' && fields.every(({ indexState }) => ['none', 'ready'].includes(indexState))
  })
  expect(await keysOf(customer)).toEqual(['name', 'stage', 'x'])
  expect([
    (await search(customer, { search: 'started' })).length,
    (await search(customer, { search: 'open' })).length,
    (await search(customer, { search: 'much long' })).length,
  ]).toEqual([1, 0, 1])
  const short = await customer.records('POST', '/deal/records', { fields: { name: 'Two', x: 'much too long' } })
  expect(short.json.code).toBe('field_value_invalid')
  await model.released(dealModel([field('stage', select('Started', 'Won')), field('x', { unique: true })]))
  await eventually(async () => (await schemaOf(customer)).json.fields[2]!.indexState === 'ready')
  const twice = await customer.records('POST', '/deal/records', { fields: { name: 'Two', x: 'MUCH too long' } })
  expect(twice.json.code).toBe('duplicate_value')
  await model.released(dealModel([field('stage', select('Started', 'Won')), field('x')]))
  await customer.create('deal', { name: 'Two', x: 'much too long' })
})

test('a step that fails leaves nothing of the release', async () => {
  await model.released(dealModel())
  const customer = await model.customer()
  const [{ schema } = { schema: '' }] = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ schema: string }>(
      sql`SELECT schema_name AS schema FROM portico.application WHERE app_id = ${model.saasAppId}`,
    ),
  )
  await asAdministrator(platform.db.connection, (admin) => admin.query(`CREATE TABLE "${schema}".company (n int)`))
  const company = { ...dealModel().objects[0]!, objectKey: 'company' }
  const roles = { sales: { label: 'Sales', objects: {} } }
  const whole = { objects: [...dealModel([field('x')]).objects, company], roles, locations: { north: { label: 'N' } } }
  await expect(model.publish(whole)).rejects.toThrow('internal_error')
  expect(await keysOf(customer)).toEqual(['name'])
  expect((await draft()).revision).toBe(1)
  const { json } = await model.ask<{ items: object[] }>('GET', '/model/releases')
  expect(json.items).toHaveLength(1)
  await asAdministrator(platform.db.connection, (admin) => admin.query(`DROP TABLE "${schema}".company`))
  expect((await model.ask('POST', '/model/draft:publish')).status).toBe(201)
})

test('every process sees the new model on its next request, and organizations get their roles and locations', async () => {
  const other = await platform.startAnother()
  await model.released(dealModel())
  const customer = await model.customer()
  const seenBy = async (client: Pick<Platform, 'call'>) => {
    const { json } = await customer.records<{ fields: object[] }>('GET', '/deal/schema', undefined, client)
    return json.fields.length
  }
  expect([await seenBy(platform), await seenBy(other)]).toEqual([1, 1])
  const roles = { sales: { label: 'Sales', objects: { deal: { read: true } } } }
  await model.released(dealModel([field('x')], { roles, locations: { north: { label: 'North' } } }))
  expect([await seenBy(other), await seenBy(platform)]).toEqual([2, 2])
  const { json } = await platform.call<{ dataRoles: { key: string }[]; locations: { locationKey: string }[] }>(
    'GET',
    `/v1/platform/organizations/${customer.organizationId}`,
    { token: model.builder.token },
  )
  expect([json.dataRoles.map(({ key }) => key), json.locations.map(({ locationKey }) => locationKey)]).toEqual([
    ['sales'],
    ['north'],
  ])
  await model.released(dealModel([field('x')], { roles: {}, locations: {} }))
})

test('an older release is published again where that loses nothing', async () => {
  await model.released(dealModel())
  await model.released(dealModel([field('x')], { locations: { north: { label: 'North' } } }))
  const back = await model.ask<Release>('POST', '/model/releases/1:rollback', { note: 'Back' })
  expect([back.status, back.json.releaseNumber, back.json.rolledBackTo]).toEqual([201, 3, 1])
  expect(back.json.document.objects[0]!.fields).toHaveLength(1)
  await model.ask('POST', '/model/releases/2:rollback')
  await (await model.customer()).create('deal', { name: 'One', x: 'Kept' })
  const refused = await model.ask('POST', '/model/releases/1:rollback')
  expect([refused.json.code, refused.json.details![0]!.message]).toEqual([
    'model_change_refused',
    'objects/deal/fields/x: the values of 1 records would be lost. Archive it first.',
  ])
  expect((await model.ask('POST', '/model/releases/4:rollback')).json.code).toBe('model_unchanged')
  expect((await model.ask('POST', '/model/releases/9:rollback')).json.code).toBe('release_not_found')
  expect((await model.ask('GET', '/model/releases/9')).json.code).toBe('release_not_found')
})

test('two who publish at once: one of them, and nothing twice', async () => {
  await model.ask('PUT', '/model/draft', { document: dealModel() })
  const answers = await Promise.all([1, 2, 3].map(() => model.ask('POST', '/model/draft:publish')))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  expect(new Set(answers.map(({ json }) => json.code))).toEqual(new Set([undefined, 'model_unchanged']))
})

test('while indexes are built nobody publishes, and is told to come again', async () => {
  await model.released(dealModel())
  await asAdministrator(platform.db.connection, async (admin) => {
    await admin.query('BEGIN')
    await admin.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [model.saasAppId])
    const busy = await model.publish(dealModel([field('x')]))
    expect([busy.status, busy.json.code, busy.headers['retry-after']]).toEqual([409, 'model_busy', '5'])
    await admin.query('COMMIT')
  })
  expect((await model.ask('POST', '/model/draft:publish')).status).toBe(201)
})

test('everything is in the audit log, with before and after', async () => {
  await model.released(dealModel())
  await model.ask('PUT', '/model/draft/objects/deal/fields/x', { field: { label: 'X', dataType: 'text' } })
  await model.ask('DELETE', '/model/draft')
  const entries = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ action: string; target: string }>(sql`SELECT action, target_type AS target FROM portico.audit_entry
      WHERE account_id = ${model.builder.accountId} AND app_id = ${model.saasAppId} ORDER BY entry_id`),
  )
  expect(entries).toEqual([
    { action: 'application.created', target: 'application' },
    { action: 'model_draft.updated', target: 'model_draft' },
    { action: 'model_release.published', target: 'model_release' },
    { action: 'model_draft.field_put', target: 'model_field' },
    { action: 'model_draft.discarded', target: 'model_draft' },
  ])
})

test('fields come, are hidden and go while others read and write, and no request fails', async () => {
  await model.released(dealModel())
  const customer = await model.customer()
  let working = true
  let requests = 0
  const failures: unknown[] = []
  const work = async () => {
    while (working) {
      const answers = [
        await customer.records('POST', '/deal/records', { fields: { name: 'One' } }),
        await customer.records('POST', '/deal/records/search', { sort: 'name_asc' }),
      ]
      requests += answers.length
      failures.push(...answers.filter(({ status }) => status > 201).map(({ text }) => text))
    }
  }
  const workers = Array.from({ length: 4 }, work)
  for (let round = 0; round < 15; round++) {
    await model.released(dealModel([field('x', { searchable: true })]))
    // Statements that name the column are under way: it goes at once, since no record has a value.
    if (round % 3 === 0) await model.released(dealModel([field('x', { searchable: true, archived: true })]))
    await model.released(dealModel())
  }
  const before = requests
  await eventually(async () => requests > before)
  working = false
  await Promise.all(workers)
  expect(failures).toEqual([])
}, 60_000)
