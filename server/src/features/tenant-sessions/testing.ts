import { afterAll, beforeAll } from 'vitest'
import { type Instance, startTestService, type TestService } from '../../../test/support/service.ts'
import { hostOf, onHost, password, setPassword, tokenOf } from '../../../test/support/tenant-host.ts'

export type OrganizationKey = 'a' | 'b' | 'dormant'
type UserKey = 'owner' | 'sales' | 'salesSouth' | 'support' | 'clerk' | 'outsider' | 'inactive'

/**
 * Two processes on one database for a test file, behind a clock that stands still until a test moves it, and what users
 * of tenant hosts do there.
 */
export function startTenantHosts() {
  const clock = { ms: Date.now() }
  let service: TestService
  let other: Instance
  beforeAll(async () => {
    service = await startTestService({ clock: { now: () => clock.ms } })
    other = await service.startAnother()
  })
  afterAll(() => service.stop())

  const organization = (key: OrganizationKey = 'a') => service.app.organizations[key]

  /** Sends requests to the host of an organisation. */
  const ask = (key: OrganizationKey = 'a', client: Pick<Instance, 'call'> = service) =>
    onHost(client, hostOf(organization(key)))

  /** A user with the password of the tests. */
  async function withPassword(name: UserKey, key: OrganizationKey = 'a') {
    const user = organization(key).users[name]
    await setPassword(service.db, organization(key).organizationId, user.userId)
    return user
  }

  const signIn = (email: string, given = password, key: OrganizationKey = 'a') =>
    ask(key)('POST', '/api/session', { body: { email, password: given }, headers: { 'user-agent': 'A browser' } })

  /** A user who has signed in. */
  async function sessionOf(name: UserKey) {
    const { email, userId } = await withPassword(name)
    return { email, userId, session: tokenOf(await signIn(email)) }
  }

  /** What `GET /api/session` answers in a process. */
  const statusOf = async (session: string, client?: Pick<Instance, 'call'>) =>
    (await ask('a', client)('GET', '/api/session', { session })).status

  async function rows<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return service.db.database.as('portico_owner', (tx) => tx.rows<Row>({ text, values }))
  }

  /** What the audit log says of a target: `<action> by <kind of actor>`. */
  async function auditOf(targetId: string): Promise<string[]> {
    const text = `SELECT action || ' by ' || actor_kind AS told FROM portico.audit_entry WHERE target_id = $1`
    return (await rows<{ told: string }>(text, [targetId])).map(({ told }) => told).sort()
  }

  return {
    clock,
    service: () => service,
    /** The other process, which remembers what it has read. */
    other: () => other,
    ...{ organization, ask, withPassword, signIn, sessionOf, statusOf, rows, auditOf },
  }
}
