import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTenancy, type Tenancy, type TestOrganization } from './testing.ts'

let tenancy: Tenancy
let organization: TestOrganization
beforeAll(async () => {
  tenancy = await startTenancy(undefined, { queuesMail: true })
  organization = await tenancy.newOrganization()
})
afterAll(() => tenancy.platform.stop())

/** What waits to be sent to an address, by kind. */
const waiting = (address: string) =>
  tenancy.platform.db.database.as('portico_system', (tx) =>
    tx.rows({ text: 'SELECT kind FROM portico.mail_message WHERE recipient = $1', values: [address] }),
  )

test('a stranger gets five invitations an hour, by inviting and by sending again; then it is said when there is room', async () => {
  const email = 'stranger@example.com'
  const invitations = `/organizations/${organization.organizationId}/invitations`
  const { invitationId } = await tenancy.done('POST', invitations, { email })
  for (let count = 0; count < 4; count++) await tenancy.done('POST', `${invitations}/${invitationId}:resend`)
  const owner = { email, displayName: 'Stranger' }
  const elsewhere = (await tenancy.newOrganization()).organizationId
  const provision = { name: 'Trap', slug: `trap-${invitationId.slice(-12)}`, owner }
  for (const [path, body] of [
    [`${invitations}/${invitationId}:resend`, undefined],
    [`/organizations/${elsewhere}/invitations`, { email }],
    [`/applications/${tenancy.appId}/organizations`, provision],
    ['/team/invitations', { email, role: 'developer' }],
  ] as const) {
    const answer = await tenancy.ask('POST', path, body === undefined ? {} : { body })
    expect([path, answer.status, answer.json.code]).toEqual([path, 429, 'mail_limit_reached'])
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3000)
  }
  expect(await waiting(email)).toHaveLength(5)
  // The link that was sent last still works.
  const { items } = await tenancy.done('GET', `${invitations}?status=pending`)
  expect(items).toMatchObject([{ invitationId, email }])
})

test('who asks for links for somebody is answered alike, whether one is sent or not', async () => {
  const { email, builderId } = tenancy.builder
  const ask = () => tenancy.platform.call('POST', '/v1/platform/password-resets', { body: { email } })
  const first = await ask()
  expect(await waiting(email)).toHaveLength(1)
  // As if there had been more of late, in other places of the account.
  await tenancy.platform.db.database.as('portico_owner', (tx) =>
    tx.rows({
      text: `INSERT INTO portico.mail_count SELECT counter_key, created_at, gen_random_uuid() FROM portico.mail_count
        CROSS JOIN generate_series(1, 4) WHERE mail_id = (SELECT mail_id FROM portico.mail_count ORDER BY created_at DESC LIMIT 1)`,
      values: [],
    }),
  )
  const second = await ask()
  expect([second.status, second.text]).toEqual([first.status, first.text])
  expect(await waiting(email)).toHaveLength(1)
  const links = await tenancy.platform.db.database.as('portico_owner', (tx) =>
    tx.rows({ text: 'SELECT FROM portico.builder_password_reset WHERE builder_id = $1', values: [builderId] }),
  )
  expect(links).toHaveLength(1)
})
