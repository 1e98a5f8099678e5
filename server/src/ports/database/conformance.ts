/** What every adapter of the database-server port must do, held against a real server. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DatabaseServer } from './port.ts'

/** Runs the suite on a server of the adapter's; `open` is called once. */
export function describeDatabaseServer(name: string, open: () => Promise<DatabaseServer>): void {
  describe(`${name} conforms to the database-server port`, () => {
    let server: DatabaseServer
    beforeAll(async () => {
      server = await open()
    })
    afterAll(async () => {
      await server?.stop()
    })

    async function inSession<T>(work: (client: pg.Client) => Promise<T>, database?: string): Promise<T> {
      const client = new pg.Client({ ...server.connection, ...(database && { database }) })
      await client.connect()
      return work(client).finally(() => client.end())
    }
    const setting = (key: string) =>
      inSession(async (client) => (await client.query(`SELECT current_setting($1) AS value`, [key])).rows[0].value)

    it('names a version that the server confirms, 15 or newer', async () => {
      expect(server.versionNumber).toBeGreaterThanOrEqual(150_000)
      expect(await setting('server_version_num')).toBe(String(server.versionNumber))
    })

    it('opens the database that it names, as the role that it names, with a password', async () => {
      const { rows } = await inSession((client) => client.query('SELECT current_database() AS db, current_user AS who'))
      expect(rows).toEqual([{ db: server.connection.database, who: server.connection.user }])
      expect(server.connection.password).not.toBe('')
    })

    it('refuses a wrong password', async () => {
      const client = new pg.Client({ ...server.connection, password: 'wrong' })
      await expect(client.connect()).rejects.toMatchObject({ code: '28P01' })
    })

    it('never leaves the choice of TLS to the environment', () => {
      expect(server.connection.ssl).toBeDefined()
    })

    it('holds text of every script', async () => {
      expect(await setting('server_encoding')).toBe('UTF8')
      const words = ['Zürich', '東京', 'мир', '🙂', '\u{10ffff}']
      const { rows } = await inSession((client) => client.query('SELECT unnest($1::text[]) AS word', [words]))
      expect(rows.map((row) => row.word)).toEqual(words)
    })

    it('keeps what was acknowledged: nothing that makes a commit durable is switched off', async () => {
      expect([await setting('fsync'), await setting('full_page_writes')]).toEqual(['on', 'on'])
      expect(await setting('synchronous_commit')).not.toBe('off')
    })

    it('lets the role make roles, schemas and databases', async () => {
      const tag = `conformance_${process.pid}_${Date.now()}`
      await inSession(async (client) => {
        await client.query(`CREATE ROLE ${tag} NOLOGIN NOBYPASSRLS`)
        await client.query(`CREATE SCHEMA ${tag} AUTHORIZATION ${tag}`)
        await client.query(`CREATE DATABASE ${tag}`)
      })
      try {
        const { rows } = await inSession((client) => client.query('SELECT 1 AS one'), tag)
        expect(rows).toEqual([{ one: 1 }])
      } finally {
        await inSession(async (client) => {
          await client.query(`DROP DATABASE ${tag}`)
          await client.query(`DROP SCHEMA ${tag}`)
          await client.query(`DROP ROLE ${tag}`)
        })
      }
    })

    it('serves forty sessions at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, n) =>
          inSession(async (client) => (await client.query('SELECT $1::int AS n, pg_sleep(0.05)', [n])).rows[0].n),
        ),
      )
      expect(answers).toEqual(Array.from({ length: 40 }, (_, n) => n))
    })

    // Last: what stop() leaves behind differs, and is tested with each adapter.
    it('stops once, however often it is asked', async () => {
      await Promise.all([server.stop(), server.stop()])
      await server.stop()
    })
  })
}
