import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  dealModel,
  eventually,
  field,
  keysOf,
  type ModelBuilder,
  newModelBuilder,
  schemaOf,
  search,
  validityOf,
} from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import type { FieldDocument } from '../../../shared/modelling/document.ts'

let platform: Platform
let model: ModelBuilder
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())
beforeEach(async () => {
  model = await newModelBuilder(platform)
})

describe('what data stands against is refused, with the number of rows in every organization', () => {
  const options = (...values: string[]) => ({
    dataType: 'select' as const,
    options: values.map((value) => ({ value, label: value })),
  })
  const cases: readonly (readonly [
    what: string,
    before: FieldDocument,
    after: FieldDocument[],
    code: string,
    rows: number,
  ])[] = [
    ['another type', field('x'), [field('x', { dataType: 'integer' })], 'data_type_change', 3],
    ['required', field('x'), [field('x', { required: true })], 'rows_without_value', 2],
    ['a new field that is required', field('x'), [field('x'), field('y', { required: true })], 'rows_without_value', 5],
    ['unique', field('x'), [field('x', { unique: true })], 'duplicate_values', 2],
    ['an option less', field('x', options('A', 'B')), [field('x', options('B'))], 'option_in_use', 2],
    ['a field less', field('x'), [], 'data_would_be_lost', 3],
    ['an index on long text', field('x'), [field('x', { indexed: true })], 'values_too_long', 0],
  ]
  test.each(cases)('%s', async (_what, before, after, code, rows) => {
    await model.released(dealModel([before]))
    const [one, other] = [await model.customer(), await model.customer()]
    // `A` twice in one organization, once as `B` in the other; two records without a value.
    for (const x of ['A', 'A', null]) await one.create('deal', { name: 'D', x })
    for (const x of ['B', null]) await other.create('deal', { name: 'D', x })
    const long = code === 'values_too_long'
    if (long) await other.create('deal', { name: 'D', x: 'x'.repeat(256) })
    const refused = await model.publish(dealModel(after))
    expect([refused.status, refused.json.code], refused.text).toEqual([409, 'model_change_refused'])
    const [detail] = refused.json.details!
    expect(detail!.code).toBe(code)
    if (code !== 'data_type_change') expect(detail!.message).toContain(`${long ? 1 : rows} records`)
    expect((await validityOf(model)).issues.map((issue) => issue.code)).toEqual([code])
    const { json } = await model.ask<{ changes: { rowsAtStake: number }[] }>('GET', '/model/draft/diff')
    expect(json.changes[0]!.rowsAtStake).toBe(long ? 1 : rows)
    expect((await schemaOf(one)).json.fields).toHaveLength(2)
  })

  test('a reference that would lead elsewhere, and a relationship with another end', async () => {
    const company = { ...dealModel().objects[0]!, objectKey: 'company' }
    const withLink = (references: string, to: string) => {
      const [deal] = dealModel([field('link', { dataType: 'reference', references })]).objects
      const shown = { label: 'R', inverseLabel: 'R', cardinality: 'many-to-many', deleteRule: 'unlink' } as const
      return { objects: [deal!, company], relationships: { linked: { ...shown, from: 'deal', to } } }
    }
    await model.released(withLink('company', 'company'))
    const refused = await model.publish(withLink('deal', 'deal'))
    expect([refused.status, refused.json.code]).toEqual([409, 'model_change_refused'])
    expect(refused.json.details!.map(({ field: path, code }) => [path, code])).toEqual([
      ['objects/deal/fields/link', 'reference_change'],
      ['relationships/linked', 'relationship_shape_change'],
    ])
  })

  test('an object with records, and roles that somebody holds', async () => {
    const roles = { sales: { label: 'Sales', objects: {} } }
    await model.released(dealModel([], { roles }))
    const customer = await model.customer()
    await customer.create('deal', { name: 'Kept' })
    const { dataRoles } = (
      await platform.call<{ dataRoles: { dataRoleId: string }[] }>(
        'GET',
        `/v1/platform/organizations/${customer.organizationId}`,
        { token: model.builder.token },
      )
    ).json
    const { dataRoleId } = dataRoles[0]!
    await customer.records('POST', '/deal/records', { fields: { name: 'Of the role' }, dataRoleId })
    const refused = await model.publish({ objects: [], roles: {} })
    expect(
      refused.json.details!.map(({ field: path, code, message }) => [path, code, /\d+/.exec(message)![0]]),
    ).toEqual([
      ['roles/sales', 'role_in_use', '1'],
      ['objects/deal', 'data_would_be_lost', '2'],
    ])
  })
})

describe('what goes', () => {
  const archived = { archived: true }

  test('a field is hidden with its values, comes back with them, and goes for good when that is confirmed', async () => {
    await model.released(dealModel([field('x', { searchable: true })]))
    const customer = await model.customer()
    const recordId = await customer.create('deal', { name: 'One', x: 'needle' })
    await model.released(dealModel([field('x', { searchable: true, ...archived })]))
    expect(await keysOf(customer)).toEqual(['name'])
    const hidden = await customer.records('GET', `/deal/records/${recordId}`)
    expect(hidden.json['fields']).toEqual({ name: 'One' })
    await eventually(async () => (await search(customer, { search: 'needle' })).length === 0)
    await model.released(dealModel([field('x', { searchable: true })]))
    const shown = await customer.records('GET', `/deal/records/${recordId}`)
    expect(shown.json['fields']).toEqual({ name: 'One', x: 'needle' })
    await eventually(async () => (await search(customer, { search: 'needle' })).length === 1)

    await model.released(dealModel([field('x', archived)]))
    const unconfirmed = await model.publish(dealModel())
    expect(unconfirmed.json.details![0]).toMatchObject({ code: 'data_loss_unconfirmed' })
    expect((await model.ask<{ destructive: boolean }>('GET', '/model/draft/diff')).json.destructive).toBe(true)
    expect((await model.ask('POST', '/model/draft:publish', { confirmDataLoss: true })).status).toBe(201)
    await model.released(dealModel([field('x')]))
    const anew = await customer.records('GET', `/deal/records/${recordId}`)
    expect(anew.json['fields']).toEqual({ name: 'One', x: null })
  })

  test('an object too, with everything that is kept of its records', async () => {
    const object = { ...dealModel().objects[0]! }
    await model.released({ objects: [object] })
    const customer = await model.customer()
    await customer.create('deal', { name: 'One' })
    await model.released({ objects: [{ ...object, ...archived }] })
    expect((await schemaOf(customer)).status).toBe(404)
    expect((await model.publish({ objects: [] }, { confirmDataLoss: true })).status).toBe(201)
    const left = await platform.db.database.inOrganization(customer.organizationId, (tx) =>
      tx.rows(sql`SELECT FROM portico.record_directory WHERE organization_id = ${customer.organizationId}`),
    )
    expect(left).toEqual([])
    await model.released({ objects: [object] })
    expect(await search(customer, {})).toEqual([])
  })

  test('objects that refer to each other go together, and names that JavaScript knows are names', async () => {
    const link = (references: string) => field('link', { dataType: 'reference', references, indexed: true })
    const one = { ...dealModel([link('constructor'), field('who', { dataType: 'user' })]).objects[0]! }
    const other = { ...dealModel([link('deal'), field('toString')]).objects[0]!, objectKey: 'constructor' }
    const roles = { constructor: { label: 'C', objects: { constructor: { read: true } } } }
    await model.released({ objects: [one, other], roles })
    const customer = await model.customer()
    expect((await schemaOf(customer, 'constructor')).status).toBe(200)
    await model.released({ objects: [] })
    expect((await schemaOf(customer)).status).toBe(404)
  })

  test('what holds nothing goes at once', async () => {
    await model.released({
      objects: [...dealModel([field('x')]).objects, { ...dealModel().objects[0]!, objectKey: 'e' }],
    })
    await (await model.customer()).create('deal', { name: 'One' })
    await model.released(dealModel())
  })
})

test('labels, options, limits and indexes change under the records that there are', async () => {
  const select = (...labels: string[]) => ({
    dataType: 'select' as const,
    searchable: true,
    options: labels.map((label, index) => ({ value: `v${index}`, label })),
  })
  await model.released(dealModel([field('x'), field('stage', select('Open'))]))
  const customer = await model.customer()
  await customer.create('deal', { name: 'One', x: 'much too long', stage: 'v0' })
  const changed = dealModel([
    field('stage', select('Started', 'Won')),
    field('x', { label: 'Ex', indexed: true, searchable: true, validation: { maxLength: 5 } }),
  ])
  await model.released(changed)
  await eventually(async () => {
    const { fields, searchState } = (await schemaOf(customer)).json
    return searchState === 'ready' && fields.every(({ indexState }) => ['none', 'ready'].includes(indexState))
  })
  expect(await keysOf(customer)).toEqual(['name', 'stage', 'x'])
  expect([
    (await search(customer, { search: 'started' })).length,
    (await search(customer, { search: 'open' })).length,
    (await search(customer, { search: 'much long' })).length,
  ]).toEqual([1, 0, 1])
  const short = await customer.records('POST', '/deal/records', { fields: { name: 'Two', x: 'much too long' } })
  expect(short.json.code).toBe('field_value_invalid')
  await model.released(dealModel([field('stage', select('Started', 'Won')), field('x', { unique: true })]))
  await eventually(async () => (await schemaOf(customer)).json.fields[2]!.indexState === 'ready')
  const twice = await customer.records('POST', '/deal/records', { fields: { name: 'Two', x: 'MUCH too long' } })
  expect(twice.json.code).toBe('duplicate_value')
  await model.released(dealModel([field('stage', select('Started', 'Won')), field('x')]))
  await customer.create('deal', { name: 'Two', x: 'much too long' })
})
