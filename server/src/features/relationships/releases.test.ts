import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { dealModel, type ModelBuilder, newModelBuilder } from '../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../test/support/platform.ts'

/** What releases of the model do to links between records, and what is related by what comes with the service. */
let platform: Platform
let model: ModelBuilder
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())
beforeEach(async () => {
  model = await newModelBuilder(platform)
})

const next = {
  label: 'Next deals',
  inverseLabel: 'Deals before',
  cardinality: 'many-to-many',
  from: 'deal',
  to: 'deal',
  deleteRule: 'unlink',
} as const

/** A customer with a credential for everything. */
async function newCustomer() {
  const customer = await model.customer()
  const scopes = ['records.read', 'records.write', 'relationships.read', 'relationships.write']
  const issued = await platform.call<{ token: string }>(
    'POST',
    `/v1/platform/organizations/${customer.organizationId}/credentials`,
    { token: model.builder.token, body: { kind: 'live', displayName: 'Links', scopes } },
  )
  const ask = (method: string, path: string, body?: unknown) =>
    platform.call<{ items?: unknown[] }>(method, `/v1/apps/${model.saasAppId}${path}`, {
      token: issued.json.token,
      ...(body !== undefined && { body }),
    })
  const link = async (relationshipKey: string, fromRecordId: string, toRecordId: string) =>
    expect((await ask('POST', '/relationships', { relationshipKey, fromRecordId, toRecordId })).status).toBe(201)
  return { ...customer, ask, link }
}

test('a relationship goes with its links once that is confirmed, and comes back without them', async () => {
  await model.released(dealModel([], { relationships: { next } }))
  const customers = [await newCustomer(), await newCustomer()]
  for (const { create, link } of customers) {
    await link('next', await create('deal', { name: 'One' }), await create('deal', { name: 'Two' }))
  }
  const refused = await model.publish(dealModel())
  expect([refused.status, refused.json.details]).toEqual([
    409,
    [expect.objectContaining({ field: 'relationships/next', code: 'data_loss_unconfirmed' })],
  ])
  expect(refused.json.details![0]!.message).toContain(' 2 relationships')
  await model.released(dealModel(), { confirmDataLoss: true })
  const [customer] = customers
  expect((await customer!.ask('GET', '/relationships?relationshipKey=next')).json.code).toBe('reference_not_found')
  const left = await platform.db.database.inOrganization(customer!.organizationId, (tx) =>
    tx.rows(sql`SELECT FROM portico.record_relationship WHERE organization_id = ${customer!.organizationId}`),
  )
  expect(left).toEqual([])
  await model.released(dealModel([], { relationships: { next } }))
  expect((await customer!.ask('GET', '/relationships?relationshipKey=next')).json.items).toEqual([])
})

test('whoever relates records while the relationship is taken away is told that there is none', async () => {
  await model.released(dealModel())
  const customer = await newCustomer()
  for (let round = 0; round < 5; round++) {
    await model.released(dealModel([], { relationships: { next } }))
    const [one, two] = [await customer.create('deal', { name: 'One' }), await customer.create('deal', { name: 'Two' })]
    const linking = Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        customer.ask('POST', '/relationships', {
          relationshipKey: 'next',
          fromRecordId: index % 2 === 0 ? one : two,
          toRecordId: index % 2 === 0 ? two : one,
        }),
      ),
    )
    const released = await model.publish(dealModel(), { confirmDataLoss: true })
    expect([201, 409]).toContain(released.status)
    for (const { status, json } of await linking)
      expect([200, 201, 'reference_not_found']).toContain(json.code ?? status)
    if (released.status === 409) await model.released(dealModel(), { confirmDataLoss: true })
  }
})

test('native relationships are there without being part of the model, and outlast its releases', async () => {
  await model.released(dealModel())
  const customer = await newCustomer()
  const document = await model.ask<{ document: { relationships?: object } }>('GET', '/model/draft')
  expect(Object.keys(document.json.document.relationships ?? {})).not.toContain('contacts_related')
  await model.released(dealModel([], { relationships: { next: { ...next, label: 'Further deals' } } }))
  const contact = (firstName: string) => customer.create('contacts', { contactType: 'person', firstName })
  await customer.link('contacts_related', await contact('Ada'), await contact('Grace'))
  await model.released(dealModel(), { confirmDataLoss: true })
  const { json } = await customer.ask('GET', '/relationships?relationshipKey=contacts_related')
  expect(json.items).toHaveLength(1)
})
