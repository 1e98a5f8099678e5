import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { startPlatform } from '../../../test/support/platform.ts'
import { openAccount } from '../../../test/support/platform-account.ts'
import { domainKeptMs } from '../../shared/tenant-domains.ts'
import { newSlug, refusal, startTenancy, type Tenancy, unknownId } from './testing.ts'

/** A service as in production: no domain counts before its record was found in the DNS. */
const clock = { ms: Date.parse('2026-09-14T09:30:00Z'), now: () => clock.ms }
let tenancy: Tenancy
beforeAll(async () => {
  tenancy = await startTenancy(clock)
})
afterEach(() => {
  tenancy.platform.dns.beforeAnswer = undefined
})
afterAll(() => tenancy.platform.stop())

const newDomain = () => `crm-${randomBytes(4).toString('hex')}.northwind.example`
const pathOf = (organizationId: string) => `/organizations/${organizationId}`
const read = (organizationId: string) => tenancy.done('GET', pathOf(organizationId))
const change = (organizationId: string, body: object) => tenancy.done('PATCH', pathOf(organizationId), body)
const verify = (organizationId: string) => tenancy.ask('POST', `${pathOf(organizationId)}/domain:verify`)

async function asking(customDomain: string = newDomain()) {
  const organization = await tenancy.newOrganization({ customDomain })
  const { domainVerification } = await read(organization.organizationId)
  return { ...organization, customDomain, record: domainVerification as { recordName: string; recordValue: string } }
}

/** An organization whose record is in the DNS. */
async function publishing(customDomain?: string) {
  const made = await asking(customDomain)
  tenancy.platform.dns.publish(made.record.recordName, made.record.recordValue)
  return made
}

/** Is the name a tenant host? Then there is a session to ask for. */
async function isServed(host: string): Promise<boolean> {
  clock.ms += domainKeptMs
  const { json } = await tenancy.platform.call('GET', '/api/session', { headers: { host } })
  return json.code !== 'route_not_found'
}

async function invitedTo(organizationId: string): Promise<string> {
  const email = `${randomBytes(4).toString('hex')}@northwind.example`
  await tenancy.done('POST', `${pathOf(organizationId)}/invitations`, { email, displayName: 'Ada Lovelace' })
  return tenancy.platform.mailbox.newestTo(email).text
}

describe('a domain that is asked for', () => {
  test('is shown with the record to publish, and nothing else comes of it', async () => {
    const customDomain = newDomain()
    const { organizationId, slug } = await tenancy.newOrganization({ customDomain: customDomain.toUpperCase() })
    const shown = await read(organizationId)
    expect(shown).toMatchObject({
      customDomain,
      customDomainVerifiedAt: null,
      tenantOrigin: `http://${slug}.localhost:8080`,
      domainVerification: {
        recordName: `_portico.${customDomain}`,
        recordValue: expect.stringMatching(/^portico-verification=[\w-]{43}$/),
      },
    })
    const { json } = await tenancy.another.call('GET', `/v1/platform${pathOf(organizationId)}`, {
      token: tenancy.builder.token,
    })
    expect(json).toEqual(shown)
    expect(await isServed(customDomain)).toBe(false)
    expect(await invitedTo(organizationId)).toContain(`http://${slug}.localhost:8080/`)
    expect((await change(organizationId, { customDomain: null })).domainVerification).toBeNull()
  })

  test('may be asked for by several, and none learns of another', async () => {
    const { customDomain, organizationId } = await publishing()
    const before = await asking(customDomain)
    expect((await verify(organizationId)).status).toBe(200)
    const after = await asking(customDomain)
    for (const { record } of [before, after]) {
      expect(record).toEqual({ recordName: `_portico.${customDomain}`, recordValue: expect.any(String) })
    }
    const nobodys = await asking()
    const refusals = await Promise.all([before, after, nobodys].map((one) => verify(one.organizationId)))
    for (const answer of refusals) expect([answer.status, answer.json.code]).toEqual([422, 'domain_not_verified'])
  })
})

describe('verification', () => {
  test('finds the record, and from then on the domain is served, linked to and told', async () => {
    const { organizationId, customDomain, record, revision } = await asking()
    tenancy.platform.dns.publish(record.recordName, 'v=spf1 -all', ` ${record.recordValue} `)
    const answer = await verify(organizationId)
    expect([answer.status, answer.headers.etag]).toEqual([200, `"${revision + 1}"`])
    const customDomainVerifiedAt = new Date(clock.ms).toISOString()
    expect(answer.json).toMatchObject({
      customDomain,
      customDomainVerifiedAt,
      domainVerification: null,
      tenantOrigin: `https://${customDomain}`,
      revision: revision + 1,
    })
    expect(await read(organizationId)).toEqual(answer.json)
    expect(await isServed(customDomain)).toBe(true)
    expect(await invitedTo(organizationId)).toContain(`https://${customDomain}/accept-invitation#token=`)
    const events = (await tenancy.events(organizationId)).filter(({ eventKey }) => eventKey === 'organization.updated')
    expect(events.map(({ data }) => data)).toEqual([expect.objectContaining({ customDomain, customDomainVerifiedAt })])
    const entry = (await tenancy.audit(organizationId)).at(-1)
    expect(entry).toMatchObject({
      action: 'organization.domain_verified',
      before: { customDomainVerifiedAt: null, domainVerification: record },
      after: { customDomainVerifiedAt, domainVerification: null },
    })
  })

  test('that was done changes nothing when it is asked for again, whatever the DNS says now', async () => {
    const { organizationId, record } = await publishing()
    const first = await verify(organizationId)
    tenancy.platform.dns.publish(record.recordName)
    const again = await verify(organizationId)
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(tenancy.platform.dns.asked.filter((name) => name === record.recordName)).toHaveLength(1)
    expect(await tenancy.audit(organizationId)).toHaveLength(2)
  })

  test('says what it looked for and what it found, and changes nothing', async () => {
    const { organizationId, customDomain, record } = await asking()
    const before = await read(organizationId)
    const lookedFor = `Looked for a TXT record ${record.recordName} with the value ${record.recordValue}.`
    const messagesOf = async () => {
      const answer = await verify(organizationId)
      expect([answer.status, answer.json.code]).toEqual([422, 'domain_not_verified'])
      return answer.json.details.map(({ message }: { message: string }) => message)
    }
    expect(await messagesOf()).toEqual([lookedFor, 'Found no TXT record of this name.'])
    const values = ['\u0007bell\n', 'x'.repeat(200), record.recordValue.slice(0, -1), 'd', 'e', 'f', 'g']
    tenancy.platform.dns.publish(record.recordName, ...values)
    const [first, ...found] = await messagesOf()
    expect(first).toBe(lookedFor)
    expect(found).toEqual([
      'Found: ?bell?',
      `Found: ${'x'.repeat(100)}…`,
      `Found: ${record.recordValue.slice(0, -1)}`,
      'Found: d',
      'Found: e',
      'Found 2 more.',
    ])
    expect(await read(organizationId)).toEqual(before)
    expect(await isServed(customDomain)).toBe(false)
    expect(await tenancy.audit(organizationId)).toHaveLength(1)
  })

  test('takes no record of another organization or another domain', async () => {
    const one = await asking()
    const other = await asking(one.customDomain)
    tenancy.platform.dns.publish(one.record.recordName, other.record.recordValue)
    expect((await verify(one.organizationId)).json.code).toBe('domain_not_verified')
    const changed = await change(one.organizationId, { customDomain: newDomain() })
    tenancy.platform.dns.publish(changed.domainVerification.recordName, one.record.recordValue)
    expect((await verify(one.organizationId)).json.code).toBe('domain_not_verified')
  })

  test('gives a domain to one organization, of those that race for it too, until that one leaves it', async () => {
    const customDomain = newDomain()
    const all = await Promise.all(Array.from({ length: 5 }, () => asking(customDomain)))
    tenancy.platform.dns.publish(all[0]!.record.recordName, ...all.map(({ record }) => record.recordValue))
    const answers = await Promise.all(all.map(({ organizationId }) => verify(organizationId)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    const loser = answers.findIndex(({ status }) => status === 409)
    const winner = answers.findIndex(({ status }) => status === 200)
    expect(refusal(answers[loser]!)).toEqual([409, 'domain_taken', 'customDomain'])
    expect((await read(all[loser]!.organizationId)).customDomainVerifiedAt).toBeNull()
    await change(all[winner]!.organizationId, { customDomain: null })
    expect((await verify(all[loser]!.organizationId)).status).toBe(200)
  })

  test('that several ask for at once is one', async () => {
    const { organizationId, revision } = await publishing()
    const answers = await Promise.all([1, 2, 3].map(() => verify(organizationId)))
    expect(answers.map(({ status, json }) => [status, json.revision])).toEqual(Array(3).fill([200, revision + 1]))
    expect(await tenancy.audit(organizationId)).toHaveLength(2)
  })

  test('holds for the domain that was looked up, and holds no transaction meanwhile', async () => {
    const { organizationId } = await publishing()
    const open: unknown[] = []
    tenancy.platform.dns.beforeAnswer = async () => {
      const { rows } = await asAdministrator(tenancy.platform.db.connection, (admin) =>
        admin.query(`SELECT query FROM pg_stat_activity
          WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
            AND backend_type = 'client backend'`),
      )
      open.push(...rows)
      await change(organizationId, { customDomain: newDomain() })
    }
    expect(refusal(await verify(organizationId))).toEqual([409, 'revision_conflict', 'customDomain'])
    expect((await read(organizationId)).customDomainVerifiedAt).toBeNull()
    expect(open).toEqual([])
  })

  test('ends with another domain, and stays through every other change', async () => {
    const { organizationId, customDomain } = await publishing()
    const { customDomainVerifiedAt } = (await verify(organizationId)).json
    clock.ms += 1000
    const renamed = await change(organizationId, { name: 'Southwind', customDomain: customDomain.toUpperCase() })
    expect(renamed).toMatchObject({ customDomain, customDomainVerifiedAt })
    const next = newDomain()
    expect(await change(organizationId, { customDomain: next })).toMatchObject({
      customDomain: next,
      customDomainVerifiedAt: null,
      domainVerification: { recordName: `_portico.${next}` },
    })
    expect([await isServed(customDomain), await isServed(next)]).toEqual([false, false])
    // What was verified once has to be verified again.
    expect(await change(organizationId, { customDomain })).toMatchObject({ customDomainVerifiedAt: null })
  })

  test('needs a domain', async () => {
    const { organizationId } = await tenancy.newOrganization()
    expect(refusal(await verify(organizationId))).toEqual([422, 'domain_not_verified', 'customDomain'])
  })

  test('is to be tried again where the DNS gives no answer', async () => {
    const { organizationId, record } = await publishing()
    tenancy.platform.dns.fail(record.recordName, 'SERVFAIL')
    await expect(verify(organizationId)).rejects.toThrow(/a fault: 503 .*"code":"dns_unavailable"/)
    expect((await read(organizationId)).customDomainVerifiedAt).toBeNull()
  })

  test("looks nothing up for another account's organization", async () => {
    const asked = tenancy.platform.dns.asked.length
    for (const id of [tenancy.foreign.organizationId, unknownId]) {
      expect(refusal(await verify(id))).toEqual([404, 'organization_not_found'])
    }
    expect(tenancy.platform.dns.asked).toHaveLength(asked)
  })
})

test('in development names that nobody can hold count at once, and still belong to one organization', async () => {
  const platform = await startPlatform({ acceptReservedDomains: true })
  const account = await openAccount(platform, 'dev')
  const body = { appKey: account.key('app'), name: account.name('app') }
  const { saasAppId } = await account.call<{ saasAppId: string }>('POST', '/v1/platform/applications', body)
  const create = (customDomain: string) => {
    const body = { name: 'Northwind', slug: newSlug(), customDomain }
    return account.ask('POST', `/v1/platform/applications/${saasAppId}/organizations`, { token: account.token, body })
  }
  const { json } = await create('crm.test')
  expect(json).toMatchObject({
    customDomainVerifiedAt: expect.any(String),
    domainVerification: null,
    tenantOrigin: 'https://crm.test',
  })
  const host = { headers: { host: 'crm.test' } }
  expect((await platform.call('GET', '/api/session', host)).json.code).toBe('credential_missing')
  expect(refusal(await create('crm.test'))).toEqual([409, 'domain_taken', 'customDomain'])
  const real = await create('crm.portico.dev')
  expect(real.json['customDomainVerifiedAt']).toBeNull()

  // One that was asked for when it did not count yet.
  const path = `/v1/platform/organizations/${json['organizationId']}`
  await asAdministrator(platform.db.connection, (admin) =>
    admin.query('UPDATE portico.organization SET custom_domain_verified_at = NULL'),
  )
  expect((await account.call('POST', `${path}/domain:verify`))['customDomainVerifiedAt']).toEqual(expect.any(String))
  expect(platform.dns.asked).toEqual([])
  await platform.stop()
})
