import { randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/database.ts'
import { createTenant } from '../../test/support/tenants.ts'
import { keysOfEnvironment } from '../ports/key-management/environment.ts'
import { KeyManagementError } from '../ports/key-management/port.ts'
import { rewrapDataKeys } from './data-keys.ts'
import { deriveKeys, type Keys, type KeysParts, openKeys } from './keys.ts'

let testbed: TestDatabase
beforeEach(async () => {
  testbed = await createTestDatabase()
})
afterEach(() => testbed.drop())

const master = randomBytes(32)
const other = randomBytes(32)

function partsOf(current: Uint8Array, ...previous: Uint8Array[]): KeysParts {
  return {
    database: testbed.database,
    keyManagement: [keysOfEnvironment({ current, previous })],
    masterKeys: [current, ...previous],
    clock: { now: () => 0 },
    log: { warn: () => {} },
  }
}
const hex = ({ pepper, cursors }: Keys) => [pepper, cursors].map((key) => Buffer.from(key).toString('hex'))
const open = async (...masters: [Uint8Array, ...Uint8Array[]]) => hex((await openKeys(partsOf(...masters))).keys)

const isThere = async (table: string) => {
  const rows = await testbed.database.as('portico_owner', (tx) =>
    tx.rows({ text: `SELECT FROM portico.${table}`, values: [] }),
  )
  return rows.length > 0
}

/** How an earlier release left a database: used, with a check value of the master key. */
async function leaveByEarlierRelease(check: Uint8Array | undefined): Promise<void> {
  await createTenant(testbed.database, { organizations: {} })
  if (!check) return
  await testbed.database.as('portico_owner', (tx) =>
    tx.rows(sql`INSERT INTO portico.installation (name, value) VALUES ('master key', ${check})`),
  )
}

/** HKDF-SHA256 of 32 bytes of 7, computed once and written down: the derivation must not change under anybody. */
const sevens = Buffer.alloc(32, 7)
const checkOfSevens = Buffer.from('37168ba976e5fa5e0c8f0e16424bbfa37d760ab145ea567c4693be39a5f9139e', 'hex')

describe('a new database', () => {
  test('gets keys of its own, that no master key leads to, and keeps them', async () => {
    const first = await open(master)
    expect(new Set([...first, ...hex(deriveKeys(master))]).size).toBe(4)
    expect(await open(master)).toEqual(first)
  })

  test('gets one set from processes that start together', async () => {
    const sets = await Promise.all([1, 2, 3, 4].map(() => open(master)))
    expect(new Set(sets.map(String)).size).toBe(1)
  })

  test('keeps no key in the clear', async () => {
    const keys = await open(master)
    const [dump] = await testbed.database.as('portico_owner', (tx) =>
      tx.rows<{ text: string }>(sql`SELECT string_agg(encode(value, 'hex'), ' ') AS text FROM portico.installation`),
    )
    for (const key of keys) expect(dump!.text).not.toContain(key)
    expect(dump!.text.length).toBeGreaterThan(128)
  })
})

describe('a database of an earlier release', () => {
  test('goes on with the keys that were derived from its master key', async () => {
    await leaveByEarlierRelease(checkOfSevens)
    expect(await open(sevens)).toEqual(hex(deriveKeys(sevens)))
    expect(hex(deriveKeys(sevens))).toEqual([
      'd4943962bf4e9b58ed9714da722ee70ff16f71a7d99fe7cb6fc0ec51d03e563a',
      '59feab8ad5be73d90cf5381ec28c46a0f642286df0fc0a39f945701c52598427',
    ])
  })

  test('goes on also when the master key is replaced at the same time', async () => {
    await leaveByEarlierRelease(checkOfSevens)
    expect(await open(other, sevens)).toEqual(hex(deriveKeys(sevens)))
  })

  test('that kept no check value goes on with the master key that is there', async () => {
    await leaveByEarlierRelease(undefined)
    expect(await open(master)).toEqual(hex(deriveKeys(master)))
  })

  test('refuses another master key, and one that is out of reach, and is left as it was', async () => {
    await leaveByEarlierRelease(checkOfSevens)
    await expect(open(master)).rejects.toBeInstanceOf(KeyManagementError)
    await expect(open(master)).rejects.toThrow('made with another master key')
    await expect(openKeys({ ...partsOf(sevens), masterKeys: [] })).rejects.toThrow('Configure it: PORTICO_MASTER_KEY')
    expect(await isThere('data_key')).toBe(false)
    expect(await open(sevens)).toEqual(hex(deriveKeys(sevens)))
  })
})

test('the keys outlive the master key', async () => {
  const keys = await open(master)
  expect(await open(other, master)).toEqual(keys)
  await rewrapDataKeys(partsOf(other, master))
  expect(await open(other)).toEqual(keys)
  await expect(open(master)).rejects.toThrow('which is not configured')
})

test('where the master key is lost, an operator can forget what can never be opened, and start anew', async () => {
  const lost = await open(master)
  await createTenant(testbed.database, { organizations: {} })
  await expect(open(other)).rejects.toThrow('which is not configured')
  await testbed.database.as('portico_owner', async (tx) => {
    await tx.rows(sql`DELETE FROM portico.data_key`)
    await tx.rows(sql`DELETE FROM portico.installation WHERE name = 'service keys'`)
  })
  const anew = await open(other)
  expect(anew.filter((key) => lost.includes(key))).toEqual([])
  expect(await open(other)).toEqual(anew)
})
