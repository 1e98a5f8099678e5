import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { objectOf } from '../../../test/support/application.ts'
import { newApplication, note, text } from '../../../test/support/modelled-application.ts'
import { type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { buildIndexes } from './index-builder.ts'

/** Models changed beside work on the same objects, and by several at once. */
let running: RecordService
beforeAll(async () => {
  running = await startRecordService()
})
afterAll(() => running?.close())

/** Works on something else, so that what waits for old snapshots has to wait, and what locks the table has not. */
async function whileSomebodyReads(work: () => Promise<void>, after: () => Promise<void>): Promise<void> {
  await asAdministrator(running.db.connection, async (admin) => {
    await admin.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await admin.query('SELECT 1')
    try {
      await work()
    } finally {
      await admin.query('COMMIT')
    }
    await after()
  })
}

async function eventually(what: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + 10_000
  while (!(await what())) {
    if (Date.now() > until) throw new Error('It did not come to that in time.')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test('an indexed field is added without a failed request, and says when it is ready', async () => {
  const app = await newApplication(running)
  await app.apply({ objects: [note()] })
  const titles = Array.from({ length: 200 }, (_, n) => ({ operation: 'create', fields: { title: `Note ${n}` } }))
  const { body } = await app.owner().batch(titles)
  const ids = body.results.map((result) => result.record!.recordId)

  let writing = true
  let requests = 0
  const failures: unknown[] = []
  const write = async (writer: number) => {
    for (let n = writer; writing; n += 4) {
      const client = app.owner()
      const answers = [
        await client.create({ fields: { title: `Writer ${writer}` } }),
        await client.update(ids[n % ids.length]!, { fields: { title: `Changed ${n}` } }),
        await client.search({ filter: { field: 'title', op: 'startsWith', value: 'changed' }, sort: 'title_asc' }),
      ]
      requests += answers.length
      failures.push(...answers.filter((answer) => answer.status > 201))
    }
  }
  const writers = [1, 2, 3, 4].map(write)
  await eventually(async () => requests > 20)
  const before = requests
  let applied: Promise<unknown> | undefined
  await whileSomebodyReads(
    async () => {
      applied = app.apply({ objects: [note(text('extra', { indexed: true }), text('code', { unique: true }))] })
      await eventually(async () => (await app.stateOf('extra')) === 'building')
      // It can be used while it is being built.
      const [first, second] = ids as [string, string]
      expect((await app.owner().update(first, { fields: { extra: 'Early' } })).status).toBe(200)
      const filter = { field: 'extra', op: 'eq', value: 'early' }
      expect((await app.owner().search({ filter, sort: 'extra_desc' })).body.records).toHaveLength(1)
      expect((await app.owner().update(second, { fields: { extra: 'Early' } })).status).toBe(200)
      expect(await app.stateOf('extra')).toBe('building')
    },
    async () => {
      await applied
    },
  )
  expect([await app.stateOf('extra'), await app.stateOf('code')]).toEqual(['ready', 'ready'])
  writing = false
  await Promise.all(writers)
  expect(failures).toEqual([])
  expect(requests).toBeGreaterThan(before)
  const [, , , , , indexes] = await app.definitions()
  expect((indexes as { valid: boolean }[]).every((index) => index.valid)).toBe(true)
}, 60_000)

test('somebody who reads for long neither stops it for ever nor makes it stop the others', async () => {
  const app = await newApplication(running)
  await app.apply({ objects: [note()] })
  const { body } = await app.owner().create({ fields: { title: 'Here' } })
  await asAdministrator(running.db.connection, async (admin) => {
    await admin.query('BEGIN')
    await admin.query(`SELECT FROM "${app.schemaName}".note`)
    const applied = app.apply({ objects: [note(text('extra'))] })
    const answers = []
    const until = Date.now() + 1400
    while (Date.now() < until) answers.push(await app.owner().get(body.recordId))
    await admin.query('COMMIT')
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
    expect(answers.length).toBeGreaterThan(3)
    expect(await applied).toEqual({ objectsAdded: 0, fieldsAdded: 1 })
  })
})

test('several at once: each does what the others have left, and every index is built once', async () => {
  const app = await newApplication(running)
  await app.apply({ objects: [note()] })
  await app.owner().batch(Array.from({ length: 100 }, (_, n) => ({ operation: 'create', fields: { title: `${n}` } })))
  for (let round = 0; round < 3; round++) {
    const fields = ['a', 'b', 'c'].map((name) =>
      text(`${name}${round}`, { indexed: name !== 'b', unique: name === 'b' }),
    )
    const results = await Promise.all(
      Array.from({ length: 3 }, (_, n) =>
        app.apply({
          objects: [note(...fields), objectOf(`o${round}`, [text('a')]), objectOf(`p${round}-${n}`, [text('a')])],
        }),
      ),
    )
    expect(results.reduce((sum, result) => sum + result.fieldsAdded, 0)).toBe(3 + 1 + 3)
    expect(results.reduce((sum, result) => sum + result.objectsAdded, 0)).toBe(1 + 3)
    for (const field of fields)
      expect([field.fieldKey, await app.stateOf(field.fieldKey)]).toEqual([field.fieldKey, 'ready'])
  }
  const [, , , , , indexes] = await app.definitions()
  const built = (indexes as { name: string; valid: boolean }[]).filter((index) => index.name.includes('.ix_'))
  expect(built.map((index) => index.valid)).toEqual(Array(9).fill(true))
}, 60_000)

test('an index that cannot be built says so, hinders nobody, and is built when it can be', async () => {
  const app = await newApplication(running)
  const document = { objects: [note(text('code', { unique: true }))] }
  await app.apply({ objects: [note()] })
  await app.apply(document)
  // As if the service had ended before it could build the index.
  const [, , , , , indexes] = await app.definitions()
  const { name } = (indexes as { name: string }[]).find((index) => index.name.includes('.ix_'))!
  await running.db.database.alone(`DROP INDEX ${name}`)
  const building = () =>
    running.db.database.as('portico_owner', async (tx) => {
      await tx.rows(
        sql`UPDATE portico.field_definition SET index_state = 'building' WHERE app_id = ${app.appId} AND field_key = 'code'`,
      )
      await tx.rows(sql`SELECT portico.bump_epoch(${app.appId})`)
    })
  await building()
  const made = await Promise.all(['Same', 'sAME'].map((code) => app.owner().create({ fields: { title: 'T', code } })))
  expect(made.map((answer) => answer.status)).toEqual([201, 201])
  await buildIndexes(running.db.database, app.appId)
  expect(await app.stateOf('code')).toBe('failed')
  expect((await app.owner().create({ fields: { title: 'T', code: 'Other' } })).status).toBe(201)
  await app.owner().update(made[0]!.body.recordId, { fields: { code: 'Own' } })
  expect(await app.apply(document)).toEqual({ objectsAdded: 0, fieldsAdded: 0 })
  expect(await app.stateOf('code')).toBe('ready')
  expect((await app.owner().create({ fields: { title: 'T', code: 'OTHER' } })).body.code).toBe('duplicate_value')
})
