import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { objectOf } from '../../../test/support/application.ts'
import { type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { createTenant, type Tenant } from '../../../test/support/tenants.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { ModelDocument } from '../modelling/document.ts'
import { lifecycleOf } from './outbox-test-support.ts'

/**
 * The dispatcher works over all organisations. Whoever can write rows of their own organisation, past every check of a request,
 * must not make it tell of others.
 */
const model: ModelDocument = {
  objects: [objectOf('deal', [{ fieldKey: 'name', dataType: 'text', required: true }])],
}
const plan = {
  model,
  organizations: {
    a: { users: { owner: { owner: true } }, credentials: { live: {} } },
    b: { credentials: { live: {} } },
  },
} as const

let running: RecordService
let victim: Tenant<typeof plan>
let other: Tenant<typeof plan>

beforeAll(async () => {
  running = await startRecordService()
  victim = await createTenant(running.db.database, plan)
  other = await createTenant(running.db.database, plan)
})
afterAll(() => running?.close())
beforeEach(() => asSystem(sql`DELETE FROM portico.webhook_queue`))

const asSystem = <Row>(statement: ReturnType<typeof sql>) =>
  running.db.database.as('portico_system', (tx) => tx.rows<Row>(statement))

interface Row {
  readonly organizationId: string
  readonly appId: string
  readonly keyId: string
  readonly scope: 'account' | 'app'
}

/** As somebody writes it who is bound to the organisation, and to nothing else. */
async function smuggle({ organizationId, appId, keyId, scope }: Row): Promise<string> {
  const subscriptionId = uuidv7(Date.now())
  const events = [
    { eventKey: 'record.created', eventVersion: '2026-11-20' },
    { eventKey: 'organization.updated', eventVersion: '2026-09-14' },
  ]
  await running.db.database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.webhook_subscription (organization_id, subscription_id, app_id, display_name,
        destination_url, scope, events, key_id, secret_sealed, secret_hint)
      VALUES (${organizationId}, ${subscriptionId}, ${appId}, 'Test', 'https://receiver.example/', ${scope},
        ${JSON.stringify(events)}, ${keyId}, ${Buffer.from('sealed')}, 'aled')`),
  )
  return subscriptionId
}

/** Something happens; tells what of it is on its way to each of the subscriptions. */
async function told(...subscriptionIds: readonly string[]): Promise<string[][]> {
  await running.records(victim.appId, victim.organizations.a.users.owner, 'deal').create({ fields: { name: 'Secret' } })
  await lifecycleOf(running.db.database, victim.appId, victim.organizations.a.organizationId)
  await running.service.dispatcher.dispatchAll()
  const rows = await asSystem<{
    id: string
    eventKey: string
  }>(sql`SELECT subscription_id AS id, event_key AS "eventKey"
    FROM portico.webhook_queue ORDER BY delivery_id`)
  return subscriptionIds.map((id) => rows.filter((row) => row.id === id).map(({ eventKey }) => eventKey))
}

test('a subscription with the credential of another organisation hears nothing, whoever else has that credential', async () => {
  const { a, b } = victim.organizations
  const { keyId } = a.credentials.live
  const own = await smuggle({ organizationId: a.organizationId, appId: victim.appId, keyId, scope: 'account' })
  const within = await smuggle({ organizationId: b.organizationId, appId: victim.appId, keyId, scope: 'app' })
  expect(await told(within, own)).toEqual([[], ['record.created', 'organization.updated']])
})

test('a subscription to an application that its organisation is not of is refused by the database', async () => {
  const { organizationId, credentials } = other.organizations.a
  const { keyId } = credentials.live
  const smuggled = smuggle({ organizationId, appId: victim.appId, keyId, scope: 'app' })
  await expect(smuggled).rejects.toMatchObject({ code: '23503' })
})
