import { randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import { expect } from 'vitest'
import type { Answer, HttpClient, Sent } from '../../../test/support/http-client.ts'
import { type Platform, startPlatform, type TestBuilder } from '../../../test/support/platform.ts'
import { createTenant, issueCredential } from '../../../test/support/tenants.ts'
import { testModel } from '../../../test/support/test-model.ts'

/** A service with one builder, one application with DataRole and location templates, and nobody in it. */
export interface Tenancy {
  readonly platform: Platform
  /** Another process on the same database. */
  readonly another: HttpClient
  readonly builder: TestBuilder
  readonly appId: string
  /** Asks as the builder. */
  ask(method: string, path: string, sent?: Sent): Promise<Answer<Any>>
  /** The same, and expects that it works. */
  done(method: string, path: string, body?: unknown): Promise<Any>
  newOrganization(body?: object): Promise<TestOrganization>
  newUser(organizationId: string, body?: object): Promise<Any>
  /** An application of somebody else, with an organization that has a user. */
  readonly foreign: Foreign
  /** A delegated credential of a user, or a live one of the organization. */
  newToken(organizationId: string, userId?: string): Promise<string>
  /** What the outbox holds for an organization, in the order of writing. */
  events(organizationId: string): Promise<TestEvent[]>
  /** What the audit log of the builder's account holds about a target, as it was written: a test's clock may stand still. */
  audit(targetId: string): Promise<Any[]>
  /** Accepts on the host of an organization. */
  accept(slug: string, body: object, client?: Pick<HttpClient, 'call'>): Promise<Answer<Any>>
  /** The token of the newest mail to an address. */
  tokenFor(address: string): string
}

// biome-ignore lint/suspicious/noExplicitAny: answers are held against their schemas by the service under test
type Any = any

interface Foreign {
  readonly appId: string
  readonly organizationId: string
  readonly slug: string
  readonly userId: string
  readonly customDomain: string
}

export interface TestOrganization {
  readonly organizationId: string
  readonly slug: string
  readonly revision: number
  readonly dataRoles: readonly { readonly dataRoleId: string; readonly key: string; readonly label: string }[]
  readonly locations: readonly { readonly locationId: string; readonly locationKey: string; readonly name: string }[]
}

export interface TestEvent {
  readonly eventId: string
  readonly eventKey: string
  readonly saasAppId: string
  readonly version: string
  readonly subject: { readonly type: string; readonly id: string }
  readonly actor: { readonly kind: string; readonly id: string }
  readonly data: Readonly<Record<string, unknown>>
}

export const password = 'correct horse battery staple'
export const unknownId = '0199a1b2-0000-7000-8000-00000000dead'

/** A slug that nobody has had before. */
export function newSlug(): string {
  return `org-${randomBytes(5).toString('hex')}`
}

export async function startTenancy(
  clock?: { now(): number },
  options: { readonly queuesMail?: boolean } = {},
): Promise<Tenancy> {
  const platform = await startPlatform({ ...(clock && { clock }), ...options })
  const { database } = platform.db
  const another = await platform.startAnother()
  const account = await platform.newAccount()
  // Good for as long as any test moves its clock.
  const token = await platform.newSession(account, new Date('2100-01-01'))
  const builder = { ...account, token }
  const application = (accountId?: string, organizations = {}) =>
    createTenant(database, { ...(accountId && { accountId }), model: testModel, dataRoles: ['audit'], organizations })
  const { appId } = await application(builder.accountId)
  await database.as('portico_owner', (tx) =>
    tx.rows(
      sql`INSERT INTO portico.location_template (app_id, template_key, label) VALUES (${appId}, 'head', 'Head office')`,
    ),
  )
  const theirs = await createTenant(database, { organizations: { theirs: { users: { one: { owner: true } } } } })
  const { organizationId, slug, users } = theirs.organizations.theirs
  const foreign = {
    appId: theirs.appId,
    organizationId,
    slug,
    userId: users.one.userId,
    customDomain: 'theirs.example',
  }
  await database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`UPDATE portico.organization SET custom_domain = ${foreign.customDomain}, custom_domain_verified_at = now()
      WHERE organization_id = ${organizationId}`),
  )

  function ask(method: string, path: string, sent: Sent = {}) {
    return platform.call<Any>(method, `/v1/platform${path}`, { token, ...sent })
  }

  async function done(method: string, path: string, body?: unknown) {
    const answer = await ask(method, path, body === undefined ? {} : { body })
    expect(answer.status, answer.text).toBeLessThan(300)
    return answer.json
  }

  return {
    platform,
    another,
    builder,
    appId,
    ask,
    done,
    newOrganization: (body = {}) =>
      done('POST', `/applications/${appId}/organizations`, { name: 'Northwind', slug: newSlug(), ...body }),
    newUser: (organization, body = {}) => {
      const email = `${randomBytes(4).toString('hex')}@northwind.example`
      return done('POST', `/organizations/${organization}/users`, { email, displayName: 'Ada Lovelace', ...body })
    },
    foreign,
    newToken: async (organization, userId) => {
      const scope = { appId, organizationId: organization, dataRoles: {}, locations: {} }
      const plan = userId === undefined ? { displayName: 'live' } : { kind: 'dat' as const, displayName: 'dat', userId }
      return (await database.inOrganization(organization, (tx) => issueCredential(tx, scope, plan))).token
    },
    events: (organization) =>
      database.inOrganization(organization, (tx) =>
        tx.rows<TestEvent>(sql`SELECT event_id AS "eventId", event_key AS "eventKey", app_id AS "saasAppId",
            event_version AS version, data,
            json_build_object('type', subject_type, 'id', subject_id) AS subject,
            json_build_object('kind', actor_kind, 'id', actor_id) AS actor
          FROM portico.outbox WHERE organization_id = ${organization} ORDER BY transaction_id, event_key`),
      ),
    audit: (targetId) =>
      database.as('portico_owner', (tx) =>
        tx.rows<Any>(sql`SELECT action, actor_kind AS "actorKind", actor_id AS "actorId", app_id AS "saasAppId",
            target_organization_id AS "organizationId", before, after
          FROM portico.audit_entry WHERE account_id = ${builder.accountId} AND target_id = ${targetId}
          ORDER BY xmin::text::bigint, ctid`),
      ),
    accept: (slug, body, client = platform) =>
      client.call('POST', '/api/invitations:accept', { headers: { host: `${slug}.localhost:8080` }, body }),
    tokenFor: (address) => /#token=([\w-]+)/.exec(platform.mailbox.newestTo(address).text)![1]!,
  }
}

/** What an answer refuses, and where it says so. */
export function refusal({ status, json }: Answer<Any>) {
  return [status, json.code, ...(json.details ?? []).map(({ field }: { field: string }) => field)]
}
