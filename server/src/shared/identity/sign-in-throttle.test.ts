import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { Failure } from '../../kernel/errors.ts'
import { createSignInThrottle, removeOldSignInCounters } from './sign-in-throttle.ts'

let db: TestDatabase
let now = Date.parse('2031-05-06T07:08:09.000Z')
const minutes = (count: number) => count * 60_000
const days = (count: number) => count * 24 * 60 * 60_000
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

let people = 0
/** Two throttles are two processes: they share nothing but the database. */
const processes = ({ knowsProxies = false } = {}) => {
  const clock = { now: () => now }
  return [0, 1].map(() => createSignInThrottle({ database: db.database, clock, knowsProxies })) as [Throttle, Throttle]
}
type Throttle = ReturnType<typeof createSignInThrottle>

/** `wrong`, `right`, or for how many seconds the attempt is put off. */
async function attempt(throttle: Throttle, account: string, address: string, isRight = false, realm = 'builders') {
  try {
    const found = await throttle.guard({ realm, account, address }, async () => (isRight ? 'somebody' : undefined))
    return found === undefined ? 'wrong' : 'right'
  } catch (error) {
    if (error instanceof Failure && error.code === 'sign_in_throttled') return error.retryAfterSeconds!
    throw error
  }
}

/** An account and an address that nobody has failed with. */
function newcomer() {
  people++
  return { account: `person-${people}@portico.example`, address: `192.0.2.${people}` }
}

async function fail(throttle: Throttle, account: string, address: string, times: number) {
  const outcomes: unknown[] = []
  for (let count = 0; count < times; count++) outcomes.push(await attempt(throttle, account, address))
  return outcomes
}

describe('guesses at one account from one address', () => {
  test('are looked at five times, then after waits that double up to a quarter of an hour, in every process', async () => {
    const [here, there] = processes()
    const { account, address } = newcomer()
    expect(await fail(here, account, address, 3)).toEqual(['wrong', 'wrong', 'wrong'])
    expect(await fail(there, account.toUpperCase(), address, 2)).toEqual(['wrong', 'wrong'])
    for (const wait of [30, 60, 120, 240, 480, 900, 900]) {
      expect(await attempt(here, account, address, true)).toBe(wait)
      now += (wait - 1) * 1000
      expect(await attempt(there, account, address, true)).toBe(1)
      now += 1000
      expect(await attempt(there, account, address)).toBe('wrong')
    }
  })

  test('sixteen at once are looked at no more often than sixteen in a row', async () => {
    const { account, address } = newcomer()
    const both = processes()
    const outcomes = await Promise.all(Array.from({ length: 16 }, (_, i) => attempt(both[i % 2]!, account, address)))
    expect(outcomes.filter((outcome) => outcome === 'wrong')).toHaveLength(5)
    expect(outcomes.filter((outcome) => outcome === 30)).toHaveLength(11)
  })

  test('are forgotten when the right password came, or after a quarter of an hour', async () => {
    const [throttle] = processes()
    const { account, address } = newcomer()
    await fail(throttle, account, address, 4)
    expect(await attempt(throttle, account, address, true)).toBe('right')
    expect(await fail(throttle, account, address, 4)).toEqual(Array(4).fill('wrong'))
    now += minutes(15)
    expect(await fail(throttle, account, address, 5)).toEqual(Array(5).fill('wrong'))
    // Beyond the free ones they are remembered for a day.
    now += minutes(15)
    expect(await fail(throttle, account, address, 2)).toEqual(['wrong', 60])
    now += days(1)
    expect(await fail(throttle, account, address, 5)).toEqual(Array(5).fill('wrong'))
  })

  test('do not count where the attempt failed for another reason, and that clears nothing', async () => {
    const [throttle] = processes()
    const { account, address } = newcomer()
    await fail(throttle, account, address, 4)
    const codeMissing = () =>
      throttle.guard({ realm: 'builders', account, address }, () => Promise.reject(new Error('The code is missing.')))
    for (let count = 0; count < 8; count++) await expect(codeMissing()).rejects.toThrow('The code is missing.')
    expect(await fail(throttle, account, address, 2)).toEqual(['wrong', 30])
    now += 30_000
    await expect(codeMissing()).rejects.toThrow('The code is missing.')
    // The wait is over, and stays over.
    expect(await attempt(throttle, account, address, true)).toBe('right')
  })
})

describe('guesses from many addresses', () => {
  test('at one account are looked at twenty times; who signed in from an address before is not kept out there', async () => {
    const [throttle] = processes()
    const { account, address } = newcomer()
    expect(await attempt(throttle, account, address, true)).toBe('right')
    for (let network = 0; network < 5; network++) await fail(throttle, account, `198.51.100.${network}`, 4)
    expect(await attempt(throttle, account, '198.51.100.250')).toBe(30)
    expect(await attempt(throttle, account, address)).toBe('wrong')
    expect(await attempt(throttle, account, address, true)).toBe('right')
    expect(await attempt(throttle, newcomer().account, '198.51.100.250')).toBe('wrong')
  })

  test('of one IPv6 network count as from one address', async () => {
    const [throttle] = processes()
    const { account } = newcomer()
    for (let host = 1; host <= 5; host++)
      expect(await attempt(throttle, account, `2001:db8:1:2::${host}`)).toBe('wrong')
    expect(await attempt(throttle, account, '2001:db8:1:2:ffff::1')).toBe(30)
    expect(await attempt(throttle, account, '2001:db8:1:3::1')).toBe('wrong')
  })
})

test('guesses from one address at many accounts are looked at a hundred times, whatever succeeds there', async () => {
  const [throttle] = processes()
  const { address } = newcomer()
  for (let count = 0; count < 100; count++) {
    expect(await attempt(throttle, newcomer().account, address)).toBe('wrong')
    if (count % 20 === 0) expect(await attempt(throttle, newcomer().account, address, true)).toBe('right')
  }
  expect(await attempt(throttle, newcomer().account, address, true)).toBe(30)
  expect(await attempt(throttle, newcomer().account, '203.0.113.77', true)).toBe('right')
})

test('an address that may be a proxy nobody has named keeps nobody out, but for the accounts that are guessed at', async () => {
  const [unaware] = processes()
  const [aware] = processes({ knowsProxies: true })
  for (const address of ['10.1.2.3', '127.0.0.1', '::1', 'fd00::7', '::ffff:192.168.1.1']) {
    for (let count = 0; count < 101; count++) {
      expect(await attempt(unaware, newcomer().account, address)).toBe('wrong')
    }
    expect(await attempt(unaware, newcomer().account, address, true)).toBe('right')
    const { account } = newcomer()
    expect((await fail(unaware, account, address, 6)).at(-1)).toBe(30)
  }
  // Where proxies are named, it is the address of a client.
  for (let count = 0; count < 100; count++) await attempt(aware, newcomer().account, '10.1.2.3')
  expect(await attempt(aware, newcomer().account, '10.1.2.3', true)).toBe(30)
})

test('the same address of an organisation and of builders are two accounts', async () => {
  const [throttle] = processes()
  const { account, address } = newcomer()
  await fail(throttle, account, address, 5)
  expect(await attempt(throttle, account, address, true, '0199a1b2-0000-7000-8000-000000000001')).toBe('right')
  expect(await attempt(throttle, account, address)).toBe(30)
})

test('what is refused leaves no counter, names are not kept, and old counters go', async () => {
  const [throttle] = processes()
  const counters = () =>
    db.database.as('portico_system', (tx) =>
      tx.rows({ text: `SELECT encode(counter_key, 'escape') AS key FROM portico.sign_in_counter`, values: [] }),
    )
  now += days(60)
  await removeOldSignInCounters(db.database, now)
  expect(await counters()).toEqual([])
  const { account, address } = newcomer()
  await fail(throttle, account, address, 5)
  expect(await attempt(throttle, account, address)).toBe(30)
  // For the pair, the account and the address.
  expect(await counters()).toHaveLength(3)
  expect(JSON.stringify(await counters())).not.toMatch(/portico\.example|192\.0/)
  expect(await attempt(throttle, newcomer().account, address)).toBe('wrong')
  expect(await counters()).toHaveLength(5)

  const trusted = newcomer()
  await attempt(throttle, trusted.account, trusted.address, true)
  now += days(2)
  await removeOldSignInCounters(db.database, now)
  expect(await counters()).toHaveLength(2)
  now += days(30)
  await removeOldSignInCounters(db.database, now)
  expect(await counters()).toEqual([])
})
