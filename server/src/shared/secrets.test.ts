import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/database.ts'
import { keysOfEnvironment } from '../ports/key-management/environment.ts'
import { type KeyManagement, KeyManagementError } from '../ports/key-management/port.ts'
import { readDataKeys, rewrapDataKeys, rotateDataKey } from './data-keys.ts'
import { SealBroken } from './sealing.ts'
import { openSecrets, type Secrets, type SecretsParts } from './secrets.ts'

const context = ['organization', 'application', 'reference']
const canary = 'canary-7e3f21-plaintext'
let testbed: TestDatabase
const logged: string[] = []

const holding = (current: Uint8Array, ...previous: Uint8Array[]) => keysOfEnvironment({ current, previous })
const master = randomBytes(32)

function partsOf(parts: Partial<SecretsParts> = {}): SecretsParts {
  const log = { warn: (details: object, sentence: string) => void logged.push(`${sentence} ${String(details)}`) }
  const clock = { now: () => 0 }
  return { database: testbed.database, keyManagement: [holding(master)], clock, log, ...parts }
}
const open = (parts?: Partial<SecretsParts>) => openSecrets(partsOf(parts))
const textOf = async (secrets: Secrets, sealed: Buffer) => (await secrets.open(sealed, context)).toString()
const dataKeyIds = async () => (await readDataKeys(testbed.database)).map(({ dataKeyId }) => dataKeyId)
const sealedWith = (sealed: Buffer) => sealed.readUInt32BE(1)

beforeAll(async () => {
  testbed = await createTestDatabase()
})
afterEach(async () => {
  logged.length = 0
  await testbed.database.as('portico_owner', (tx) => tx.rows(sql`DELETE FROM portico.data_key`))
})
afterAll(() => testbed.drop())

describe('a sealed value', () => {
  test.each(['', canary, 'Zürich 東京 🙂', 'x'.repeat(1_048_576)])('opens to what was sealed (%#)', async (text) => {
    const secrets = await open()
    const sealed = await secrets.seal(text, context)
    expect(await textOf(secrets, sealed)).toBe(text)
    expect(sealed).toHaveLength(Buffer.byteLength(text) + 33)
  })

  test('of bytes opens to the same bytes, which were left as they were', async () => {
    const secrets = await open()
    const bytes = randomBytes(100)
    const before = Buffer.from(bytes)
    expect(await secrets.open(await secrets.seal(bytes, context), context)).toEqual(before)
    expect(bytes).toEqual(before)
  })

  test('is never alike, and shows nothing of what it holds', async () => {
    const secrets = await open()
    const [one, two] = [await secrets.seal(canary, context), await secrets.seal(canary, context)]
    expect(one.equals(two)).toBe(false)
    expect(one.includes('canary')).toBe(false)
  })

  test('names its format and its data key', async () => {
    const sealed = await (await open()).seal(canary, context)
    expect([sealed[0], sealedWith(sealed)]).toEqual([1, 1])
  })

  test('of more than 1 MiB is refused', async () => {
    await expect((await open()).seal(Buffer.alloc(1_048_577), context)).rejects.toThrow(RangeError)
  })

  test('that was changed in any byte, cut or lengthened does not open', async () => {
    const secrets = await open()
    const sealed = await secrets.seal('short', context)
    const changed = Array.from(sealed, (_, at) => {
      const copy = Buffer.from(sealed)
      copy[at]! ^= 1
      return copy
    })
    const cut = Array.from(sealed, (_, length) => sealed.subarray(0, length))
    for (const broken of [...changed, ...cut, Buffer.concat([sealed, Buffer.alloc(1)])]) {
      await expect(secrets.open(broken, context)).rejects.toBeInstanceOf(SealBroken)
    }
  })

  test.each([
    [['organization', 'application', 'other']],
    [['organization', 'application']],
    [['organization', 'application', 'reference', '']],
    [['organizationapplication', 'reference']],
    [['organization', 'applicationreference', '']],
    [['application', 'organization', 'reference']],
  ])('does not open with the context %j', async (other) => {
    const secrets = await open()
    await expect(secrets.open(await secrets.seal(canary, context), other)).rejects.toBeInstanceOf(SealBroken)
  })

  test('needs a context, and one that UTF-8 can tell from every other', async () => {
    const secrets = await open()
    await expect(secrets.seal(canary, [])).rejects.toThrow(TypeError)
    await expect(secrets.seal(canary, ['\ud800'])).rejects.toThrow(TypeError)
  })
})

describe('data keys', () => {
  test('are one for processes that start together', async () => {
    const processes = await Promise.all(Array.from({ length: 6 }, () => open()))
    expect(await dataKeyIds()).toEqual([1])
    const sealed = await processes[0]!.seal(canary, context)
    expect(await Promise.all(processes.map((one) => textOf(one, sealed)))).toEqual(processes.map(() => canary))
  })

  test('are rotated by one process while another goes on, and old values keep opening', async () => {
    let now = 0
    const [here, there] = [await open(), await open({ clock: { now: () => now } })]
    const old = await here.seal(canary, context)
    expect(await rotateDataKey(partsOf())).toBe(2)

    // A process that did the rotation, or started after it, seals with the new key; one that did not knows it at need.
    const restarted = await open()
    const renewed = await restarted.seal(canary, context)
    expect(sealedWith(renewed)).toBe(2)
    expect(sealedWith(await there.seal(canary, context))).toBe(1)
    expect(await Promise.all([1, 2, 3].map(() => textOf(here, renewed)))).toEqual([canary, canary, canary])
    expect(sealedWith(await here.seal(canary, context))).toBe(2)
    now = 60_000
    expect(sealedWith(await there.seal(canary, context))).toBe(2)
    for (const one of [here, there, restarted]) {
      expect([await textOf(one, old), await textOf(one, renewed)]).toEqual([canary, canary])
    }
  })

  test('are never skipped by rotations at the same time', async () => {
    await open()
    await Promise.all([1, 2, 3].map(() => rotateDataKey(partsOf())))
    const ids = await dataKeyIds()
    expect(ids).toEqual(ids.map((_, i) => i + 1))
    expect(ids.length).toBeGreaterThan(1)
  })

  test('hold without pause while they are rotated and re-wrapped', async () => {
    const other = randomBytes(32)
    const keyManagement: SecretsParts['keyManagement'] = [holding(other, master)]
    await open()
    const processes = [await open({ keyManagement }), await open({ keyManagement })] as const
    const sealed: Buffer[] = []
    let rotating = true
    const work = async (mine: Secrets, theirs: Secrets) => {
      while (rotating) {
        // Nothing in the loop waits for anything else: the keys are known.
        await turn()
        sealed.push(await mine.seal(canary, context))
        expect(await textOf(theirs, sealed.at(-1)!)).toBe(canary)
      }
    }
    const working = [work(processes[0], processes[1]), work(processes[1], processes[0])]
    for (let round = 0; round < 5; round++) {
      await rotateDataKey(partsOf({ keyManagement }))
      await rewrapDataKeys(partsOf({ keyManagement }))
      // One that has just started seals with the newest key, which the others then meet.
      sealed.push(await (await open({ keyManagement })).seal(canary, context))
      expect(await textOf(processes[0], sealed.at(-1)!)).toBe(canary)
    }
    rotating = false
    await Promise.all(working)
    expect(new Set(sealed.map(sealedWith)).size).toBeGreaterThan(3)
    const late = await open({ keyManagement: [holding(other)] })
    for (const one of sealed) expect(await textOf(late, one)).toBe(canary)
  })

  test('a value of one that does not exist is broken, not a reason to wait', async () => {
    const secrets = await open()
    const sealed = await secrets.seal(canary, context)
    sealed.writeUInt32BE(999, 1)
    await expect(secrets.open(sealed, context)).rejects.toThrow('data key 999')
  })

  test('cannot be exchanged for each other in the table', async () => {
    await open()
    await rotateDataKey(partsOf())
    await testbed.database.as('portico_owner', (tx) =>
      tx.rows(sql`UPDATE portico.data_key a SET wrapped = b.wrapped FROM portico.data_key b
        WHERE a.data_key_id <> b.data_key_id`),
    )
    await expect(open()).rejects.toMatchObject({ reason: 'not_authentic' })
  })
})

describe('the master key', () => {
  test('that is another one is refused with a sentence that says what to do', async () => {
    await open()
    const refused = open({ keyManagement: [holding(randomBytes(32))] })
    await expect(refused).rejects.toBeInstanceOf(KeyManagementError)
    await expect(refused).rejects.toThrow(/^The secrets of this database are sealed under the key master:\w{16}/)
    expect(await dataKeyIds()).toEqual([1])
  })

  test('is replaced: both for a time, then re-wrapped, then the new one alone', async () => {
    const next = randomBytes(32)
    const sealed = await (await open()).seal(canary, context)
    const both = partsOf({ keyManagement: [holding(next, master)] })
    expect(await textOf(await openSecrets(both), sealed)).toBe(canary)

    expect(await rewrapDataKeys(both)).toBe(1)
    expect(await rewrapDataKeys(both)).toBe(0)
    expect(await textOf(await open({ keyManagement: [holding(next)] }), sealed)).toBe(canary)
    await expect(open({ keyManagement: [holding(master)] })).rejects.toMatchObject({ reason: 'unknown_key' })
  })

  test('may move to another holder, which the first one in the list is', async () => {
    const next = randomBytes(32)
    const sealed = await (await open()).seal(canary, context)
    await rewrapDataKeys(partsOf({ keyManagement: [holding(next), holding(master)] }))
    expect(await textOf(await open({ keyManagement: [holding(next)] }), sealed)).toBe(canary)
  })

  test('is neither in the table nor in the log, and no data key or plaintext is', async () => {
    const unwrapped: Buffer[] = []
    const spy: KeyManagement = {
      ...holding(master),
      async unwrap(...asked) {
        const key = await holding(master).unwrap(...asked)
        unwrapped.push(Buffer.from(key))
        return key
      },
    }
    const secrets = await open({ keyManagement: [spy] })
    await secrets.seal(canary, context)
    const [dump] = await testbed.database.as('portico_owner', (tx) =>
      tx.rows<{ text: string }>(sql`SELECT string_agg(to_jsonb(k)::text, ' ') AS text FROM portico.data_key k`),
    )
    expect(dump!.text).toContain('master:')
    expect(unwrapped).toHaveLength(1)
    for (const secret of [...unwrapped, master, Buffer.from(canary)]) {
      for (const form of ['hex', 'base64'] as const)
        expect(dump!.text + logged.join()).not.toContain(secret.toString(form))
    }
  })
})

describe('a key management that does not answer', () => {
  /** Goes away when told to. */
  function mortal(): KeyManagement & { away: boolean } {
    const living = holding(master)
    return {
      ...living,
      away: false,
      async unwrap(...asked) {
        if (this.away) throw new KeyManagementError('unavailable', 'away')
        return living.unwrap(...asked)
      },
    }
  }

  test('is 503 for a value of a key that is not known yet; what is known opens and seals', async () => {
    const holder = mortal()
    let now = 0
    const secrets = await open({ keyManagement: [holder], clock: { now: () => now } })
    const old = await secrets.seal(canary, context)
    await rotateDataKey(partsOf())
    const renewed = await (await open()).seal(canary, context)
    holder.away = true
    now = 60_000
    await expect(secrets.open(renewed, context)).rejects.toMatchObject({ code: 'secrets_unavailable' })
    expect(await textOf(secrets, old)).toBe(canary)
    expect(sealedWith(await secrets.seal(canary, context))).toBe(1)
    expect(logged).toHaveLength(1)

    holder.away = false
    expect(await textOf(secrets, renewed)).toBe(canary)
    expect(sealedWith(await secrets.seal(canary, context))).toBe(2)
  })
})
