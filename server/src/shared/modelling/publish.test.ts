import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { objectOf } from '../../../test/support/application.ts'
import { type ModelledApplication, newApplication, note, text } from '../../../test/support/modelled-application.ts'
import { type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { FieldDocument, ModelDocument } from './document.ts'
import { installNativeObjects, versioned } from './native-objects.ts'
import { assess, publish } from './publish.ts'
import { readPublished } from './published.ts'
import { RowsAppeared } from './steps.ts'

/** What a release does inside its transaction, which nobody sees from outside. */
let running: RecordService
let app: ModelledApplication
beforeAll(async () => {
  running = await startRecordService()
})
afterAll(() => running?.close())
beforeEach(async () => {
  app = await newApplication(running)
})

const person = (fieldKey: string): FieldDocument => ({ fieldKey, label: fieldKey, dataType: 'user' })
const role = (label: string) => ({ label, objects: {} })

/** Publishes; `between` runs when it is settled that nothing stands against it, `after` before it is committed. */
async function released<T>(
  document: ModelDocument,
  after: (tx: Tx) => Promise<T>,
  between: () => Promise<unknown> = async () => {},
): Promise<T> {
  return running.db.database.as('portico_owner', async (tx) => {
    const published = (await readPublished(tx, app.appId))!
    const assessment = await assess(tx, published, document, { confirmDataLoss: true })
    expect([assessment.problems, assessment.refusals]).toEqual([[], []])
    await between()
    await publish(tx, published, assessment, { publishedBy: null })
    return after(tx)
  })
}

/** Locks stay until the transaction ends, so whoever looks last sees all that there ever were. */
async function locksOnSharedTables(tx: Tx): Promise<object[]> {
  return tx.rows(sql`SELECT c.relname AS name, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND c.relnamespace = 'portico'::regnamespace AND c.relkind IN ('r', 'p')
      AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')`)
}

describe('a release locks no table that other tenants use', () => {
  const roles = { reader: role('Reader') }

  test('while it adds objects, and fields to objects that are there', async () => {
    const first = { objects: [note(person('who'))], roles }
    expect(await released(first, locksOnSharedTables)).toEqual([])
    const more = {
      objects: [note(person('who'), person('other')), objectOf('task', [text('name'), person('who')])],
      roles,
    }
    expect(await released(more, locksOnSharedTables)).toEqual([])
  })

  test('while it removes fields, objects and roles', async () => {
    const task = objectOf('task', [text('name'), person('who')])
    await app.apply({ objects: [note(person('who')), task], roles: { other: role('Other') } })
    expect(await released({ objects: [note()], roles }, locksOnSharedTables)).toEqual([])
  })

  const native = (...fields: FieldDocument[]) => ({ ...objectOf('visit', [text('name'), ...fields]) })

  test('nor does the installation of native objects', async () => {
    const seen = await running.db.database.as('portico_owner', async (tx) => {
      await installNativeObjects(tx, app.appId, versioned([native(person('who'))]))
      await installNativeObjects(tx, app.appId, versioned([native(person('who'), person('other'))]))
      return locksOnSharedTables(tx)
    })
    expect(seen).toEqual([])
  })
})

describe('what a record refers to is there', () => {
  const nobody = '0199a1b2-0000-7000-8000-0000000000ff'

  test.each(['ownerUserId', 'dataRoleId', 'locationId'])(
    'when it is written, and when it changes: %s',
    async (name) => {
      await app.apply({ objects: [note()] })
      const created = await app.owner().create({ fields: { title: 'T' }, [name]: nobody })
      const { body: made } = await app.owner().create({ fields: { title: 'T' } })
      const changed = await app.owner().update(made.recordId, { [name]: nobody })
      for (const { status, body } of [created, changed]) {
        expect([status, body.code]).toEqual([400, 'reference_not_found'])
      }
    },
  )

  test('users in fields, of objects that are new and of objects that are not', async () => {
    await app.apply({ objects: [note(person('first'))] })
    await app.apply({ objects: [note(person('second'))] })
    const userId = app.organizations.a.users.owner.userId
    const { body: made } = await app.owner().create({ fields: { title: 'T', first: userId, second: userId } })
    for (const fieldKey of ['first', 'second']) {
      const created = await app.owner().create({ fields: { title: 'T', [fieldKey]: nobody } })
      const changed = await app.owner().update(made.recordId, { fields: { [fieldKey]: nobody } })
      for (const { body } of [created, changed]) {
        expect(body).toMatchObject({ code: 'reference_not_found', details: [{ field: `fields.${fieldKey}` }] })
      }
    }
  })

  test('nobody who works for a caller deletes what records refer to', async () => {
    const { organizationId } = app.organizations.a
    for (const name of ['tenant_user', 'data_role', 'location']) {
      const deletion = running.db.database.inOrganization(organizationId, (tx) =>
        tx.rows({ text: `DELETE FROM portico.${name} WHERE organization_id = $1`, values: [organizationId] }),
      )
      await expect(deletion).rejects.toThrow('permission denied')
    }
  })
})

describe('what is written between the count and the lock is not lost', () => {
  test('values of a field, and records of an object', async () => {
    await app.apply({ objects: [note(text('body')), objectOf('task', [text('name')])] })
    const roles = { reader: role('Reader') }
    const create = (objectKey: string, fields: object) => app.owner(objectKey).create({ fields })
    const withoutField = { objects: [note(), objectOf('task', [text('name')])], roles }
    const late = released(
      withoutField,
      async () => {},
      () => create('note', { title: 'T', body: 'Kept' }),
    )
    await expect(late).rejects.toThrow(RowsAppeared)
    const withoutObject = { objects: [note(text('body'))], roles }
    const later = released(
      withoutObject,
      async () => {},
      () => create('task', { name: 'Kept' }),
    )
    await expect(later).rejects.toThrow(RowsAppeared)
    expect((await app.owner('task').search({})).body.records).toHaveLength(1)
  })

  test('a record that got the role meanwhile', async () => {
    await app.apply({ objects: [note()], roles: { other: role('Other') } })
    const [{ id } = { id: '' }] = await running.db.database.as('portico_owner', (tx) =>
      tx.rows<{ id: string }>(sql`SELECT data_role_id AS id FROM portico.data_role
        WHERE app_id = ${app.appId} AND template_key = 'other'`),
    )
    const give = async () => {
      expect((await app.owner().create({ fields: { title: 'T' }, dataRoleId: id })).status).toBe(201)
    }
    const withoutRole = { objects: [note()], roles: { reader: role('Reader') } }
    await expect(released(withoutRole, async () => {}, give)).rejects.toThrow(RowsAppeared)
  })

  test('and who writes one while the role goes waits, and finds that there is none', async () => {
    await app.apply({ objects: [note()], roles: { other: role('Other') } })
    const [{ id } = { id: '' }] = await running.db.database.as('portico_owner', (tx) =>
      tx.rows<{ id: string }>(sql`SELECT data_role_id AS id FROM portico.data_role
        WHERE app_id = ${app.appId} AND template_key = 'other'`),
    )
    let writing: ReturnType<ReturnType<ModelledApplication['owner']>['create']> | undefined
    await released({ objects: [note()], roles: { reader: role('Reader') } }, async () => {
      writing = app.owner().create({ fields: { title: 'T' }, dataRoleId: id })
      await asAdministrator(running.db.connection, async (admin) => {
        const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
        while ((await admin.query(waiting)).rowCount === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      })
    })
    expect((await writing!).body.code).toBe('reference_not_found')
  })
})

test('keys that read like the names of indexes are keys like others', async () => {
  const named = (objectKey: string) => objectOf(objectKey, [text('name', { indexed: true })])
  const keys = ['deal', ...['role', 'created', 'updated', 'owner', 'pkey'].map((end) => `deal-${end}`)]
  await app.apply({ objects: keys.map(named) })
  // As indexes of objects from before are called.
  await running.db.database.alone(`CREATE INDEX other_role ON "${app.schemaName}".deal (created_at)`)
  await app.apply({ objects: [named('other'), named('other-role')] })
  for (const key of [...keys, 'other', 'other-role']) {
    const { status } = await app.owner(key).create({ fields: { name: 'One' }, externalKey: 'same' })
    expect([key, status]).toEqual([key, 201])
    const again = await app.owner(key).create({ fields: { name: 'Two' }, externalKey: 'same' })
    expect(again.body).toMatchObject({ code: 'duplicate_value', details: [{ field: 'externalKey' }] })
  }
})
