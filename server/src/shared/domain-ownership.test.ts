import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NameServer, startNameServer } from '../../test/support/dns.ts'
import { createDomainOwnership } from './domain-ownership.ts'

const pepper = randomBytes(32)
let server: NameServer
beforeAll(async () => {
  server = await startNameServer()
})
afterAll(() => server.close())

function ownership(dnsServers = [server.address], acceptReservedDomains = false) {
  return createDomainOwnership({ pepper, dnsServers, acceptReservedDomains })
}

describe('a look-up', () => {
  test('finds every value, long ones whole', async () => {
    const long = 'x'.repeat(300)
    server.publish('_portico.a.example', 'one', long)
    expect((await ownership().lookUp('_portico.a.example')).sort()).toEqual(['one', long])
  })

  test('finds what was published a moment ago', async () => {
    const { lookUp } = ownership()
    expect(await lookUp('_portico.new.example')).toEqual([])
    server.publish('_portico.new.example', 'one')
    expect(await lookUp('_portico.new.example')).toEqual(['one'])
    server.publish('_portico.new.example', 'two')
    expect(await lookUp('_portico.new.example')).toEqual(['two'])
  })

  test('finds nothing where there is no such name, and where the name has other records', async () => {
    server.publish('_portico.other.example')
    expect(await ownership().lookUp('_portico.other.example')).toEqual([])
    expect(await ownership().lookUp('_portico.nobody.example')).toEqual([])
  })

  test.each(['SERVFAIL', 'REFUSED', 'silence'] as const)('that meets %s is no answer', async (how) => {
    const name = `_portico.${how.toLowerCase()}.example`
    server.fail(name, how)
    await expect(ownership().lookUp(name)).rejects.toMatchObject({ code: 'dns_unavailable', status: 503 })
    expect(server.asked).toContain(name)
  })

  test('asks the next server where one is away', async () => {
    const gone = await startNameServer()
    await gone.close()
    await expect(ownership([gone.address]).lookUp('_portico.a.example')).rejects.toMatchObject({
      code: 'dns_unavailable',
    })
    server.publish('_portico.b.example', 'one')
    expect(await ownership([gone.address, server.address]).lookUp('_portico.b.example')).toEqual(['one'])
  })
})

describe('the record', () => {
  const claim = { accountId: 'a', organizationId: 'o', domain: 'crm.northwind.example' }

  test('is the same on every process, and another for each account, organization and domain', () => {
    const { recordName, recordValue } = ownership().recordOf(claim)
    expect(recordName).toBe('_portico.crm.northwind.example')
    expect(recordValue).toMatch(/^portico-verification=[\w-]{43}$/)
    expect(ownership().recordOf(claim)).toEqual({ recordName, recordValue })
    const others = [{ accountId: 'b' }, { organizationId: 'p' }, { domain: 'northwind.example' }]
    const values = others.map((other) => ownership().recordOf({ ...claim, ...other }).recordValue)
    expect(new Set([recordValue, ...values]).size).toBe(4)
  })

  test('is not needed in development for names that nobody can hold, and for no others', () => {
    const names = [
      'crm.test',
      'a.b.example',
      'x.localhost',
      'test',
      'mytest',
      'crm.test.com',
      'crm.invalid',
      'a.example.com',
    ]
    const inDevelopment = names.filter((name) => ownership([], true).needsNoRecord(name))
    expect(inDevelopment).toEqual(['crm.test', 'a.b.example'])
    expect(names.filter((name) => ownership([], false).needsNoRecord(name))).toEqual([])
  })
})
