import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import sql, { raw } from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { startTestServer } from '../../../test/support/server.ts'
import { callerOf, createTenant } from '../../../test/support/tenants.ts'
import type { Caller } from '../../kernel/caller.ts'
import { StaleIdentity } from '../../kernel/exchange.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { type Database, openDatabase } from './database.ts'
import { migrate } from './migrate.ts'

let testbed: TestDatabase
let database: Database
let alice: Caller
let mallory: Caller

beforeAll(async () => {
  testbed = await createTestDatabase({ poolSize: 4 })
  database = testbed.database
  const { organizations } = await createTenant(database, {
    organizations: { a: { credentials: { live: {} } }, b: { credentials: { live: {} } } },
  })
  await asAdministrator(testbed.connection, (admin) => admin.query(ends))
  alice = await callerOf(database, organizations.a.credentials.live)
  mallory = await callerOf(database, organizations.b.credentials.live)
})
afterAll(() => testbed.drop())

/** Ways for a session to end itself: under a statement, and under COMMIT. */
const ends = `
  CREATE FUNCTION public.die() RETURNS void LANGUAGE sql SECURITY DEFINER
    AS 'SELECT pg_terminate_backend(pg_backend_pid())';
  CREATE FUNCTION public.die_late() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    AS 'BEGIN PERFORM public.die(); RETURN NULL; END';
  CREATE TABLE public.doomed (n int);
  GRANT INSERT ON public.doomed TO portico_app;
  CREATE CONSTRAINT TRIGGER die AFTER INSERT ON public.doomed DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION public.die_late()`

const newId = () => uuidv7(Date.now())
const objectId = newId()

/** Rows of a table that every transaction here may write: the directory of records. */
const insert = (tx: Tx, organizationId: string, recordId = newId()) =>
  tx.rows(sql`INSERT INTO portico.record_directory VALUES (${organizationId}, ${recordId}, ${objectId})`)
const select = (tx: Tx, recordId: string) =>
  tx.rows(sql`SELECT record_id FROM portico.record_directory WHERE record_id = ${recordId}`)
const isStored = async (recordId: string) =>
  (await database.transact('read', alice, (tx) => select(tx, recordId))).length === 1

describe('the wall around an organisation', () => {
  let recordId: string
  beforeAll(async () => {
    recordId = newId()
    await database.transact('write', alice, (tx) => insert(tx, alice.organizationId, recordId))
  })

  test('a caller sees its own rows', async () => {
    expect(await isStored(recordId)).toBe(true)
    expect(await database.inOrganization(alice.organizationId, (tx) => select(tx, recordId))).toHaveLength(1)
  })

  test('another organisation does not see them, although the statement names no organisation', async () => {
    expect(await database.transact('read', mallory, (tx) => select(tx, recordId))).toEqual([])
  })

  test('another organisation cannot change or delete them', async () => {
    const touched = await database.transact('write', mallory, (tx) =>
      tx.rows(
        sql`UPDATE portico.record_directory SET object_id = ${newId()} WHERE record_id = ${recordId} RETURNING 1`,
      ),
    )
    expect(touched).toEqual([])
    await database.transact('write', mallory, (tx) =>
      tx.rows(sql`DELETE FROM portico.record_directory WHERE record_id = ${recordId}`),
    )
    expect(await isStored(recordId)).toBe(true)
  })

  test('nobody writes a row into another organisation, or moves one there', async () => {
    const forged = database.transact('write', mallory, (tx) => insert(tx, alice.organizationId))
    await expect(forged).rejects.toThrow(/row-level security/)
    const moved = database.transact('write', alice, (tx) =>
      tx.rows(sql`UPDATE portico.record_directory SET organization_id = ${mallory.organizationId}`),
    )
    await expect(moved).rejects.toThrow(/row-level security/)
  })

  test.each(['portico_app', 'portico_owner'] as const)('without the setting %s sees no row', async (role) => {
    expect(await database.as(role, (tx) => tx.rows(sql`SELECT FROM portico.record_directory`))).toEqual([])
  })

  test('the setting does not outlive its transaction', async () => {
    await database.transact('read', alice, (tx) => select(tx, recordId))
    const seen = await Promise.all(
      [1, 2, 3, 4].map(() => database.as('portico_app', (tx) => tx.rows(sql`SELECT FROM portico.organization`))),
    )
    expect(seen).toEqual([[], [], [], []])
  })

  test('the role of the service writes log rows of any organisation and reads none', async () => {
    const read = database.as('portico_system', (tx) => tx.rows(sql`SELECT FROM portico.request_log`))
    await expect(read).rejects.toThrow(/permission denied/)
    const other = database.as('portico_system', (tx) => tx.rows(sql`SELECT FROM portico.record_directory`))
    await expect(other).rejects.toThrow(/permission denied/)
  })

  test('no role of the service can leave row-level security', async () => {
    const roles = await database.as('portico_app', (tx) =>
      tx.rows(sql`SELECT FROM pg_roles WHERE rolname LIKE 'portico\_%' AND (rolsuper OR rolbypassrls)`),
    )
    expect(roles).toEqual([])
    const bypass = database.transact('write', mallory, async (tx) => {
      await tx.rows(sql`SET LOCAL row_security = off`)
      return select(tx, recordId)
    })
    await expect(bypass).rejects.toThrow(/row-level security/)
  })
})

describe('every table stands behind the wall', () => {
  /** What belongs to nobody: counters, keys, the history of the schema, and what only a worker or a function of the schema reads. */
  const open = [
    'portico.builder_password_reset',
    'portico.data_key',
    'portico.epoch',
    'portico.installation',
    'portico.mail_count',
    'portico.mail_message',
    'portico.migration',
    'portico.sign_in_counter',
  ]

  /**
   * Tables that miss row-level security, FORCE, or a policy that asks who is bound: for tables with an organisation the
   * organisation, for others the account, the person or the application. A partition is reached through its parent, whose policies
   * then hold; so it needs none as long as nobody but its owner may touch it directly.
   */
  const unguarded = () =>
    asAdministrator(testbed.connection, async (admin) => {
      const { rows } = await admin.query<{ name: string }>(
        `SELECT name FROM (
          SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, c.relispartition, c.relrowsecurity,
            c.relforcerowsecurity, c.relacl, c.relowner,
            EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'organization_id'
              AND NOT a.attisdropped) AS has_organization
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.relkind IN ('r', 'p') AND (n.nspname = 'portico' OR n.nspname ~ '^app_')) AS t
        WHERE name <> ALL ($1)
          AND CASE WHEN relispartition
              THEN EXISTS (SELECT FROM aclexplode(relacl) AS acl WHERE acl.grantee <> relowner)
              ELSE NOT (relrowsecurity AND relforcerowsecurity)
                OR NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.oid AND p.polcmd = '*'
                  AND (p.polroles = '{0}' OR 'portico_app'::regrole = ANY (p.polroles))
                  AND pg_get_expr(p.polqual, p.polrelid) ~ CASE WHEN has_organization
                    THEN 'organization_id = .*current_organization\\(\\)' ELSE 'current_(account|builder)\\(\\)|FROM (portico.)?application ' END)
              END
        ORDER BY 1`,
        [open],
      )
      return rows.map((row) => row.name)
    })

  test('as migrated', async () => {
    expect(await unguarded()).toEqual([])
  })

  const secured = 'ALTER TABLE portico.bare ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY'
  const bound = 'CREATE POLICY p ON portico.bare USING (account_id = portico.current_account())'

  test.each([
    ['no row-level security', 'organization_id', ''],
    ['no FORCE', 'organization_id', 'ALTER TABLE portico.bare ENABLE ROW LEVEL SECURITY'],
    ['no policy', 'organization_id', secured],
    ['a policy that looks elsewhere', 'organization_id', `${secured}; CREATE POLICY p ON portico.bare USING (true)`],
    ['an organisation and the policy of an account', 'organization_id uuid, account_id', `${secured}; ${bound}`],
    ['no organisation and no policy', 'anything', secured],
  ])('a table with %s is found', async (_, columns, statements) => {
    await asAdministrator(testbed.connection, (admin) =>
      admin.query(`CREATE TABLE portico.bare (${columns} uuid); ${statements}`),
    )
    try {
      expect(await unguarded()).toEqual(['portico.bare'])
    } finally {
      await asAdministrator(testbed.connection, (admin) => admin.query('DROP TABLE portico.bare'))
    }
  })
})

describe('rights that changed', () => {
  const bump = (scope: string) =>
    database.as('portico_app', (tx) => tx.rows(sql`SELECT portico.bump_epoch(${scope}::uuid)`))

  test.each(['organizationId', 'appId'] as const)('a bump of %s makes the caller stale', async (scope) => {
    const { organizations } = await createTenant(database, { organizations: { a: { credentials: { live: {} } } } })
    const caller = await callerOf(database, organizations.a.credentials.live)
    const recordId = newId()
    await database.transact('write', caller, (tx) => insert(tx, caller.organizationId))
    await bump(caller[scope])
    const write = database.transact('write', caller, (tx) => insert(tx, caller.organizationId, recordId))
    await expect(write).rejects.toBeInstanceOf(StaleIdentity)
    await expect(database.transact('read', caller, async () => 'answer')).rejects.toBeInstanceOf(StaleIdentity)
    // Stale comes first: what the work concluded from stale rights must not be the answer.
    const failing = database.transact('read', caller, async () => {
      throw new Error('concluded')
    })
    await expect(failing).rejects.toBeInstanceOf(StaleIdentity)
    const fresh = await callerOf(database, organizations.a.credentials.live)
    expect(await database.transact('read', fresh, (tx) => select(tx, recordId))).toEqual([])
  })

  test('a bump that was rolled back changes nothing', async () => {
    const bumped = database.as('portico_app', async (tx) => {
      await tx.rows(sql`SELECT portico.bump_epoch(${alice.organizationId}::uuid)`)
      throw new Error('undo')
    })
    await expect(bumped).rejects.toThrow('undo')
    expect(await database.transact('read', alice, async () => 'answer')).toBe('answer')
  })
})

describe('the pipeline', () => {
  test('statements of one turn run in order, and each gets its own rows', async () => {
    const rows = await database.transact('read', alice, (tx) =>
      Promise.all(Array.from({ length: 20 }, (_, i) => tx.rows<{ i: number }>(sql`SELECT ${i}::int AS i`))),
    )
    expect(rows.map(([row]) => row?.i)).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })

  test('one text many times in one turn, on connections that never saw it, survives earning a name', async () => {
    for (let round = 0; round < 20; round++) {
      const text = `SELECT $1::int + ${round} AS sum`
      const sums = await Promise.all(
        [1, 2, 3, 4].map((worker) =>
          database.transact('read', alice, (tx) =>
            Promise.all([10, 20, 30].map((n) => tx.rows<{ sum: number }>({ text, values: [worker * n] }))),
          ),
        ),
      )
      expect(sums.map((results) => results.map(([row]) => row?.sum))).toEqual(
        [1, 2, 3, 4].map((worker) => [10, 20, 30].map((n) => worker * n + round)),
      )
    }
  })

  test('a failed statement does not spoil the prepared statements behind it', async () => {
    const innocent = (tx: Tx) => tx.rows<{ n: number }>(sql`SELECT 7 AS n, ${'innocent'}::text`)
    for (let i = 0; i < 3; i++) await database.transact('read', alice, innocent)
    for (let round = 0; round < 30; round++) {
      // One connection that has not seen the statement: those behind count on a preparation that will have failed.
      const fresh = openDatabase({ connection: testbed.connection, poolSize: 1 })
      const failing = fresh.transact('write', alice, (tx) => Promise.all([tx.rows(sql`SELECT 1/0`), innocent(tx)]))
      const next = Promise.all([1, 2, 3].map(() => fresh.transact('read', alice, innocent)))
      await expect(failing).rejects.toThrow('division by zero')
      expect((await next).map(([row]) => row?.n)).toEqual([7, 7, 7])
      await fresh.close()
    }
  })

  test('a prepared statement whose table changed is made anew', async () => {
    await asAdministrator(testbed.connection, (admin) =>
      admin.query(
        'CREATE TABLE public.shape (a int); INSERT INTO public.shape VALUES (1); GRANT SELECT ON public.shape TO portico_app',
      ),
    )
    const read = () => database.transact('read', alice, (tx) => tx.rows(sql`SELECT * FROM public.shape`))
    // Every connection of the pool knows the statement by name.
    for (let i = 0; i < 5; i++) await Promise.all([read(), read(), read(), read()])
    await asAdministrator(testbed.connection, (admin) => admin.query('ALTER TABLE public.shape ADD b int DEFAULT 2'))
    for (let i = 0; i < 5; i++) {
      expect(await Promise.all([read(), read(), read(), read()])).toEqual([1, 2, 3, 4].map(() => [{ a: 1, b: 2 }]))
    }
  })

  test.each(['column', 'table'])(
    'a statement whose %s a release took away meanwhile is composed anew',
    async (gone) => {
      await asAdministrator(testbed.connection, (admin) =>
        admin.query(`CREATE TABLE public.left_${gone} (kept int); GRANT SELECT ON public.left_${gone} TO portico_app`),
      )
      let attempts = 0
      const rows = await database.transact('write', alice, (tx) => {
        const outrun = gone === 'column' ? 'SELECT taken FROM public.left_column' : 'SELECT FROM public.taken'
        return tx.rows(sql`${raw(++attempts === 1 ? outrun : `SELECT kept FROM public.left_${gone}`)}`)
      })
      expect([attempts, rows]).toEqual([2, []])
    },
  )

  test('a read transaction cannot write', async () => {
    const write = database.transact('read', alice, (tx) => insert(tx, alice.organizationId))
    await expect(write).rejects.toThrow(/read-only transaction/)
  })
})

describe('savepoints', () => {
  test('what fails inside one is undone, and the transaction goes on', async () => {
    const [before, inside, after] = [newId(), newId(), newId()]
    await database.transact('write', alice, async (tx) => {
      await insert(tx, alice.organizationId, before)
      const attempt = tx.savepoint(async () => {
        await insert(tx, alice.organizationId, inside)
        await insert(tx, alice.organizationId, inside)
      })
      await expect(attempt).rejects.toMatchObject({ code: '23505' })
      await insert(tx, alice.organizationId, after)
    })
    expect([await isStored(before), await isStored(inside), await isStored(after)]).toEqual([true, false, true])
  })

  test('they nest', async () => {
    const [outer, inner] = [newId(), newId()]
    await database.transact('write', alice, (tx) =>
      tx.savepoint(async () => {
        await insert(tx, alice.organizationId, outer)
        const attempt = tx.savepoint(async () => {
          await insert(tx, alice.organizationId, inner)
          throw new Error('only this')
        })
        await expect(attempt).rejects.toThrow('only this')
      }),
    )
    expect([await isStored(outer), await isStored(inner)]).toEqual([true, false])
  })

  test('statements and the savepoint around them may leave in one turn', async () => {
    const ids = [newId(), newId()]
    await database.transact('write', alice, (tx) =>
      tx.savepoint(() => Promise.all(ids.map((id) => insert(tx, alice.organizationId, id)))),
    )
    expect(await Promise.all(ids.map(isStored))).toEqual([true, true])
  })
})

describe('what stands in the way is tried again', () => {
  test('a serialization failure', async () => {
    const recordId = newId()
    let attempts = 0
    await database.transact('write', alice, async (tx) => {
      await insert(tx, alice.organizationId, recordId)
      if (++attempts < 3) await tx.rows(sql`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`)
    })
    expect(attempts).toBe(3)
    expect(await isStored(recordId)).toBe(true)
  })

  test('but not for ever: then it is 503', async () => {
    let attempts = 0
    const hopeless = database.transact('write', alice, async (tx) => {
      attempts++
      await tx.rows(sql`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`)
    })
    await expect(hopeless).rejects.toMatchObject({ code: 'database_unavailable', retryAfterSeconds: 1 })
    expect(attempts).toBe(4)
  })

  test('a deadlock', async () => {
    const [one, two] = [newId(), newId()]
    await database.transact('write', alice, async (tx) => {
      await insert(tx, alice.organizationId, one)
      await insert(tx, alice.organizationId, two)
    })
    let attempts = 0
    const lock = async (tx: Tx, ids: readonly string[]) => {
      attempts++
      for (const id of ids) {
        await tx.rows(sql`SELECT FROM portico.record_directory WHERE record_id = ${id} FOR UPDATE`)
        await pause(50)
      }
    }
    await Promise.all([
      database.transact('write', alice, (tx) => lock(tx, [one, two])),
      database.transact('write', alice, (tx) => lock(tx, [two, one])),
    ])
    // One of the two had to start over; on a busy machine they may meet again.
    expect(attempts).toBeGreaterThan(2)
  })

  test('a mistake is not', async () => {
    let attempts = 0
    const mistaken = database.transact('write', alice, async (tx) => {
      attempts++
      await tx.rows(sql`SELECT 1 / 0`)
    })
    await expect(mistaken).rejects.toMatchObject({ code: '22012' })
    expect(attempts).toBe(1)
  })

  test('a connection that is cut under a statement', async () => {
    const recordId = newId()
    let attempts = 0
    await database.transact('write', alice, async (tx) => {
      await insert(tx, alice.organizationId, recordId)
      if (++attempts === 1) await tx.rows(sql`SELECT public.die()`)
    })
    expect(attempts).toBe(2)
    expect(await isStored(recordId)).toBe(true)
  })

  test('a connection that is cut while nothing runs on it', async () => {
    let attempts = 0
    const answer = await database.transact('write', alice, async (tx) => {
      const [{ pid } = { pid: 0 }] = await tx.rows<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
      if (++attempts === 1) {
        await asAdministrator(testbed.connection, (admin) => admin.query('SELECT pg_terminate_backend($1)', [pid]))
        await pause(50)
      }
      return (await tx.rows<{ n: number }>(sql`SELECT 1 AS n`))[0]?.n
    })
    expect([attempts, answer]).toEqual([2, 1])
  })

  test('connections that were cut while they lay idle', async () => {
    await asAdministrator(testbed.connection, (admin) =>
      admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'portico'`),
    )
    const answers = await Promise.all([1, 2, 3, 4].map((n) => database.transact('read', alice, async () => n)))
    expect(answers).toEqual([1, 2, 3, 4])
  })
})

describe('the end of a transaction', () => {
  test('work that swallows the error of a statement is not committed, and says so', async () => {
    const recordId = newId()
    const swallowed = database.transact('write', alice, async (tx) => {
      await insert(tx, alice.organizationId, recordId)
      await tx.rows(sql`SELECT 1/0`).catch(() => {})
    })
    await expect(swallowed).rejects.toThrow(/rolled back/)
    expect(await isStored(recordId)).toBe(false)
  })

  test('work that throws leaves nothing', async () => {
    const recordId = newId()
    const failed = database.transact('write', alice, async (tx) => {
      await insert(tx, alice.organizationId, recordId)
      throw new Error('changed my mind')
    })
    await expect(failed).rejects.toThrow('changed my mind')
    expect(await isStored(recordId)).toBe(false)
  })

  test('a connection lost under COMMIT is not tried again: it may have been done', async () => {
    let attempts = 0
    const uncertain = database.transact('write', alice, async (tx) => {
      attempts++
      await tx.rows(sql`INSERT INTO public.doomed VALUES (1)`)
    })
    await expect(uncertain).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(attempts).toBe(1)
  })

  test('no connection is lost on the way', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) =>
        database.transact(i % 2 ? 'read' : 'write', alice, async (tx) => {
          await tx.rows(sql`SELECT ${raw(i % 3 ? '1' : '1/0')}`)
          if (i % 5 === 0) throw new Error('no')
        }),
      ),
    )
    expect(outcomes.some((outcome) => outcome.status === 'rejected')).toBe(true)
    expect(await Promise.all([1, 2, 3, 4].map((n) => database.transact('read', alice, async () => n)))).toHaveLength(4)
  })
})

test.each(['read', 'write'] as const)('a statement that comes after its %s is refused', async (mode) => {
  const late = await database.transact(mode, alice, async (tx) => () => tx.rows(sql`SELECT 1`))
  await expect(late()).rejects.toThrow('The transaction is over.')
})

describe('limits', () => {
  test('rows of more than 32 MB are refused by name, and the connection goes on', async () => {
    const megabytes = (count: number) =>
      database.transact('read', alice, (tx) =>
        tx.rows<{ text: string }>(sql`SELECT repeat('x', 1048576) AS text FROM generate_series(1, ${count}::int)`),
      )
    await expect(megabytes(33)).rejects.toMatchObject({ code: 'result_too_large' })
    expect(await megabytes(32)).toHaveLength(32)
  })

  const opened: Database[] = []
  const open = (options: { poolSize: number; statementTimeoutMs?: number }) => {
    const other = openDatabase({ connection: testbed.connection, ...options })
    opened.push(other)
    return other
  }
  afterEach(async () => {
    for (const other of opened.splice(0)) await other.close()
  })

  test('a statement that takes too long is 503 query_too_expensive, at once', async () => {
    let attempts = 0
    const slow = open({ poolSize: 1, statementTimeoutMs: 100 }).transact('read', alice, (tx) => {
      attempts++
      return tx.rows(sql`SELECT pg_sleep(20)`)
    })
    await expect(slow).rejects.toMatchObject({ code: 'query_too_expensive' })
    expect(attempts).toBe(1)
  })

  test('a pool that stays busy is 503 after one wait, not after several', async () => {
    const busy = open({ poolSize: 1 })
    const free = Promise.withResolvers<void>()
    const holding = busy.transact('read', alice, () => free.promise)
    const started = performance.now()
    await expect(busy.transact('read', alice, async () => 1)).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(performance.now() - started).toBeLessThan(4000)
    free.resolve()
    await holding
  })
})

describe('a server that goes away', () => {
  test('is 503 at once, and the process lives', async () => {
    const server = await startTestServer()
    // Of its own: data directories of test servers are used again, with what an earlier state of the migrations made.
    const name = `gone_${randomBytes(4).toString('hex')}`
    await asAdministrator(server.connection, (admin) => admin.query(`CREATE DATABASE ${name}`))
    const connection = { ...server.connection, database: name }
    const other = openDatabase({ connection, poolSize: 3 })
    const ping = () => other.as('portico_app', (tx) => tx.rows<{ n: number }>(sql`SELECT 1 AS n`))
    await migrate(connection)
    await Promise.all([ping(), ping(), ping()])
    const waiting = other.as('portico_app', (tx) => tx.rows(sql`SELECT pg_sleep(30)`))
    const holding = other.as('portico_app', async (tx) => {
      await pause(500)
      return tx.rows(sql`SELECT 1`)
    })
    const gone = [expect(waiting), expect(holding)].map((it) =>
      it.rejects.toMatchObject({ code: 'database_unavailable' }),
    )
    await pause(50)
    await server.stop()
    await expect(ping()).rejects.toMatchObject({ code: 'database_unavailable', retryAfterSeconds: 1 })
    await Promise.all(gone)
    await other.close()
  })

  test('is 503 after one wait when it takes connections and says nothing', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as AddressInfo
    const connection = { host: '127.0.0.1', port, user: 'x', password: 'x', database: 'x', ssl: false }
    const other = openDatabase({ connection, poolSize: 1 })
    await expect(other.as('portico_app', async () => 1)).rejects.toMatchObject({ code: 'database_unavailable' })
    mute.close()
    await other.close()
  })

  test('ends what is still under way when it is closed, on the server too', async () => {
    const other = openDatabase({ connection: testbed.login, poolSize: 2, statementTimeoutMs: 300_000 })
    const asleep = [
      other.as('portico_owner', (tx) => tx.rows(sql`SELECT pg_sleep(300), 'closing'`)),
      other.alone(`SELECT pg_sleep(300), 'closing'`),
    ]
    const ended = Promise.allSettled(asleep)
    const sleeping = async () => {
      const asked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%''closing''%'
        AND state = 'active' AND pid <> pg_backend_pid()`
      return (await asAdministrator(testbed.connection, (admin) => admin.query(asked))).rowCount
    }
    while ((await sleeping()) !== 2) await pause(10)
    await other.close()
    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    while ((await sleeping()) !== 0) await pause(10)
    await expect(other.alone('SELECT 1')).rejects.toThrow('closed')
  })

  test('is 503 when it was never there', async () => {
    const connection = { host: '127.0.0.1', port: 1, user: 'x', password: 'x', database: 'x', ssl: false }
    const nowhere = openDatabase({ connection, poolSize: 1 })
    await expect(nowhere.as('portico_app', async () => 1)).rejects.toMatchObject({ code: 'database_unavailable' })
    await nowhere.close()
  })
})
