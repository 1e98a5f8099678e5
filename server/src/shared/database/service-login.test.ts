import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { serviceLogin } from './service-login.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

async function ask(statements: readonly string[]) {
  const client = new pg.Client({ ...(await serviceLogin(db.connection)), options: '-c role=portico_app' })
  await client.connect()
  try {
    let rows: unknown[] = []
    for (const statement of statements) ({ rows } = await client.query(statement))
    return rows
  } finally {
    await client.end()
  }
}

test('who leaves the role of a transaction is nobody: no superuser, no rights, no way to the operating system', async () => {
  const leave = `SELECT set_config('role', 'none', false)`
  expect(
    await ask([
      leave,
      `SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolinherit
    FROM pg_roles WHERE rolname = current_user`,
    ]),
  ).toEqual([{ rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolbypassrls: false, rolinherit: false }])
  await expect(ask([leave, 'SELECT FROM portico.organization'])).rejects.toThrow('permission denied')
  await expect(ask([leave, `COPY (SELECT 1) TO PROGRAM 'true'`])).rejects.toThrow('permission denied')
  await expect(ask([leave, `SELECT pg_read_file('/etc/hostname')`])).rejects.toThrow('permission denied')
})

test('many processes may ask at once', async () => {
  const logins = await Promise.all(Array.from({ length: 8 }, () => serviceLogin(db.connection)))
  expect(new Set(logins.map((login) => login.password)).size).toBe(1)
})

test('a login that is no superuser is taken as it is', async () => {
  expect(await serviceLogin(db.login)).toEqual(db.login)
})
