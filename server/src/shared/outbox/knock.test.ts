import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createKnock, listenForKnocks } from './knock.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db?.drop())

test('whoever listens hears of commits elsewhere, and again after its connection was lost', async () => {
  const heard = vi.fn()
  const stop = listenForKnocks(db.login, heard)
  const knock = createKnock(db.database)
  try {
    // It looks once when it begins.
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 10_000)
    heard.mockClear()
    knock()
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 10_000)

    heard.mockClear()
    await asAdministrator(db.connection, (admin) =>
      admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'portico listener' AND datname = current_database()`),
    )
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 10_000)
    heard.mockClear()
    knock()
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 10_000)
  } finally {
    await stop()
  }
  heard.mockClear()
  knock()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(heard).not.toHaveBeenCalled()
})

test('a rush of commits knocks twice: for the first, and for the last', async () => {
  const sent: number[] = []
  const knock = createKnock({
    as: async () => {
      sent.push(sent.length)
      return undefined as never
    },
  })
  for (let round = 0; round < 100; round++) knock()
  await vi.waitFor(() => expect(sent.length).toBe(2), 1000)
  await new Promise((resolve) => setTimeout(resolve, 30))
  knock()
  await vi.waitFor(() => expect(sent.length).toBe(3), 1000)
})
