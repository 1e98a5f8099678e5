import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { asAdministrator } from '../../../../test/support/administrator.ts'
import {
  dealModel,
  draftOf,
  eventually,
  field,
  keysOf,
  type ModelBuilder,
  newModelBuilder,
  type Release,
  schemaOf,
} from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import type { ModelDocument } from '../../../shared/modelling/document.ts'

let platform: Platform
let model: ModelBuilder
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())
beforeEach(async () => {
  model = await newModelBuilder(platform)
})

test('a step that fails leaves nothing of the release', async () => {
  await model.released(dealModel())
  const customer = await model.customer()
  const [{ schema } = { schema: '' }] = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ schema: string }>(
      sql`SELECT schema_name AS schema FROM portico.application WHERE app_id = ${model.saasAppId}`,
    ),
  )
  // A table is a type as well, so this one is in the way.
  await asAdministrator(platform.db.connection, (admin) => admin.query(`CREATE DOMAIN "${schema}".company AS integer`))
  const company = { ...dealModel().objects[0]!, objectKey: 'company' }
  const roles = { sales: { label: 'Sales', objects: {} } }
  const whole = { objects: [...dealModel([field('x')]).objects, company], roles, locations: { north: { label: 'N' } } }
  await expect(model.publish(whole)).rejects.toThrow('internal_error')
  expect(await keysOf(customer)).toEqual(['name'])
  expect((await draftOf(model)).revision).toBe(1)
  const { json } = await model.ask<{ items: object[] }>('GET', '/model/releases')
  expect(json.items).toHaveLength(1)
  await asAdministrator(platform.db.connection, (admin) => admin.query(`DROP DOMAIN "${schema}".company`))
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

test('what is left to be built when a service ends is built when the next one starts', async () => {
  await model.released(dealModel())
  await model.released(dealModel([field('x', { indexed: true })]))
  const customer = await model.customer()
  const stateOfX = async () => (await schemaOf(customer)).json.fields.find((one) => one.fieldKey === 'x')!.indexState
  await eventually(async () => (await stateOfX()) === 'ready')
  const name = await platform.db.database.as('portico_owner', async (tx) => {
    const [x] = await tx.rows<{ name: string }>(sql`
      UPDATE portico.field_definition f SET index_state = 'building' FROM portico.application a
      WHERE f.app_id = ${model.saasAppId} AND f.field_key = 'x' AND a.app_id = f.app_id
      RETURNING format('%I.%I', a.schema_name, 'ix_' || replace(f.field_id::text, '-', '')) AS name`)
    await tx.rows(sql`SELECT portico.bump_epoch(${model.saasAppId})`)
    return x!.name
  })
  await platform.db.database.alone(`DROP INDEX ${name}`)
  expect(await stateOfX()).toBe('building')
  await platform.startAnother()
  await eventually(async () => (await stateOfX()) === 'ready')
  const built = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows(sql`SELECT FROM pg_index WHERE indexrelid = to_regclass(${name}) AND indisvalid`),
  )
  expect(built).toHaveLength(1)
})

test('a service that stops does not wait for an index that is being built', async () => {
  const alone = await startPlatform()
  const other = await newModelBuilder(alone)
  await other.released(dealModel())
  await asAdministrator(alone.db.connection, async (admin) => {
    const building = async () =>
      (
        await admin.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
          AND query LIKE 'CREATE INDEX CONCURRENTLY%'`)
      ).rowCount
    // Whoever builds an index waits for those who read what was there before.
    await asAdministrator(alone.db.connection, async (reader) => {
      await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await reader.query('SELECT 1')
      await other.released(dealModel([field('x', { indexed: true })]))
      await eventually(async () => (await building()) === 1)
      await alone.service.http.drain(1000)
      await alone.service.close()
      await eventually(async () => (await building()) === 0)
    })
  })
  await Promise.all([alone.dns.close(), alone.db.drop()])
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
  /** Where it is busy it says so, and is asked again. */
  const release = async (document: ModelDocument) => {
    let answer = await model.publish(document)
    while (answer.json.code === 'model_busy') answer = await model.ask('POST', '/model/draft:publish')
    expect(answer.status, answer.text).toBe(201)
  }
  const workers = Array.from({ length: 4 }, work)
  for (let round = 0; round < 15; round++) {
    await release(dealModel([field('x', { searchable: true })]))
    // Statements that name the column are under way: it goes at once, since no record has a value.
    if (round % 3 === 0) await release(dealModel([field('x', { searchable: true, archived: true })]))
    await release(dealModel())
  }
  const before = requests
  await eventually(async () => requests > before)
  working = false
  await Promise.all(workers)
  expect(failures).toEqual([])
}, 60_000)
