import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Draft,
  dealModel,
  draftOf,
  field,
  keysOf,
  type ModelBuilder,
  newModelBuilder,
  type Release,
  schemaOf,
  validityOf,
} from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import { applyModel } from '../../../shared/modelling/apply.ts'

let platform: Platform
let model: ModelBuilder
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())
beforeEach(async () => {
  model = await newModelBuilder(platform)
})

describe('a draft', () => {
  test('collects what nobody sees, is compared, published, and gone', async () => {
    await model.released(dealModel())
    const customer = await model.customer()
    const first = await draftOf(model)
    expect([first.revision, first.basedOnRelease]).toEqual([0, 1])

    const add = await model.ask<Draft>('PUT', '/model/draft/objects/deal/fields/amount', {
      field: { label: 'Amount', dataType: 'decimal', indexed: true },
      expectedRevision: 0,
    })
    expect([add.status, add.json.revision, add.headers['etag']]).toEqual([200, 1, '"1"'])
    await model.ask('PUT', '/model/draft/objects/company', {
      object: { label: 'Company', pluralLabel: 'Companies', nameField: 'name', fields: [field('name')] },
    })
    await model.ask('PUT', '/model/draft/roles/sales', {
      part: { label: 'Sales', objects: { deal: { read: true, update: false } }, actions: ['close-deal'] },
    })
    const relationship = {
      ...{ label: 'Deals', inverseLabel: 'Company', cardinality: 'one-to-many', deleteRule: 'restrict' },
      ...{ from: 'company', to: 'deal' },
    }
    await model.ask('PUT', '/model/draft/relationships/company-deals', { part: relationship })
    const last = await model.ask<Draft>('PUT', '/model/draft/locations/north', { part: { label: 'North' } })
    expect(last.json.revision).toBe(5)
    expect(await keysOf(customer)).toEqual(['name'])
    expect((await schemaOf(customer, 'company')).status).toBe(404)

    expect(await validityOf(model)).toEqual({ valid: true, issues: [] })
    const { json: diff } = await model.ask<{ changes: { kind: string; path: string }[]; destructive: boolean }>(
      'GET',
      '/model/draft/diff',
    )
    expect(diff.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      'object_added objects/company',
      'field_added objects/deal/fields/amount',
      'relationship_added relationships/company-deals',
      'role_added roles/sales',
      'location_added locations/north',
    ])
    expect(diff.destructive).toBe(false)

    const published = await model.ask<Release>('POST', '/model/draft:publish', { note: 'Amounts', expectedRevision: 5 })
    expect([published.status, published.json.releaseNumber]).toEqual([201, 2])
    expect(published.json.summary).toContain('field deal.amount added')
    expect(published.json.document).toEqual((await draftOf(model)).document)
    expect((await draftOf(model)).revision).toBe(0)
    expect(await keysOf(customer)).toEqual(['name', 'amount'])
    expect((await schemaOf(customer, 'company')).status).toBe(200)
    const { json: list } = await model.ask<{ items: { releaseNumber: number; note: string }[] }>(
      'GET',
      '/model/releases',
    )
    expect(list.items.map(({ releaseNumber, note }) => [releaseNumber, note])).toEqual([
      [2, 'Amounts'],
      [1, ''],
    ])
  })

  test('is guarded by its revision, and can be discarded', async () => {
    await model.ask('PUT', '/model/draft', { document: dealModel() })
    for (const [method, path, body] of [
      ['PUT', '/model/draft', { document: dealModel(), expectedRevision: 0 }],
      ['PUT', '/model/draft/roles/r', { part: { label: 'R', objects: {} }, expectedRevision: 7 }],
      ['DELETE', '/model/draft?expectedRevision=3', undefined],
      ['POST', '/model/draft:publish', { expectedRevision: 2 }],
    ] as const) {
      const answer = await model.ask(method, path, body)
      expect([answer.status, answer.json.code, answer.headers['etag']]).toEqual([409, 'revision_conflict', '"1"'])
    }
    expect((await model.ask<Draft>('DELETE', '/model/draft?expectedRevision=1')).json).toMatchObject({ revision: 0 })
    expect((await draftOf(model)).document.objects).toEqual([])
    expect((await model.ask('POST', '/model/draft:publish')).json.code).toBe('model_unchanged')
  })

  test('takes parts away, with the rights of roles to them', async () => {
    const fields = { amount: { read: false, write: false } }
    const roles = { sales: { label: 'Sales', objects: { deal: { read: true, fields } } } }
    await model.released(dealModel([field('amount')], { roles }))
    const removed = await model.ask<Draft>('DELETE', '/model/draft/objects/deal/fields/amount')
    expect(removed.json.document.roles!['sales']!.objects).toEqual({ deal: { read: true } })
    const gone = await model.ask<Draft>('DELETE', '/model/draft/objects/deal')
    expect(gone.json.document).toMatchObject({ objects: [], roles: { sales: { objects: {} } } })
    expect((await model.ask<Draft>('DELETE', '/model/draft/roles/sales')).json.document.roles).toEqual({})
    expect((await model.ask('DELETE', '/model/draft/roles/sales')).json.code).toBe('model_part_not_found')
    expect((await model.ask('DELETE', '/model/draft/objects/deal')).json.code).toBe('object_not_found')
    expect((await model.ask('DELETE', '/model/draft/objects/deal/fields/x')).json.code).toBe('object_not_found')
  })

  test('may be wrong, says where, and is not published then', async () => {
    const wrong = dealModel([field('owner', { dataType: 'reference', references: 'nobody' })], {
      roles: { r: { label: 'R', objects: { ghost: { read: true } } } },
    })
    const refused = await model.publish(wrong)
    expect([refused.status, refused.json.code]).toEqual([422, 'model_invalid'])
    expect(refused.json.details!.map(({ field: path, code }) => [path, code])).toEqual([
      ['objects/deal/fields/owner', 'reference_invalid'],
      ['roles/r/objects/ghost', 'object_not_found'],
    ])
    const { valid, issues } = await validityOf(model)
    expect([valid, issues.map(({ path }) => path)]).toEqual([
      false,
      ['objects/deal/fields/owner', 'roles/r/objects/ghost'],
    ])
    const badPart = await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North', objects: {} } })
    expect([badPart.status, badPart.json.details?.[0]?.field]).toEqual([400, 'part.objects'])
  })

  test('that was begun before another release is not published over it', async () => {
    await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North' } })
    await applyModel(platform.db.database, model.saasAppId, dealModel())
    expect((await model.ask('POST', '/model/draft:publish')).json.code).toBe('draft_outdated')
    await model.released(dealModel([], { locations: { north: { label: 'North' } } }))
  })
})

test('everything is in the audit log, with before and after', async () => {
  await model.released(dealModel())
  await model.ask('PUT', '/model/draft/objects/deal/fields/x', { field: { label: 'X', dataType: 'text' } })
  await model.ask('DELETE', '/model/draft')
  const entries = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ action: string; target: string }>(sql`SELECT action, target_type AS target FROM portico.audit_entry
      WHERE account_id = ${model.builder.accountId} AND app_id = ${model.saasAppId} ORDER BY entry_id`),
  )
  expect(entries).toEqual([
    { action: 'application.created', target: 'application' },
    { action: 'model_draft.updated', target: 'model_draft' },
    { action: 'model_release.published', target: 'model_release' },
    { action: 'model_draft.field_put', target: 'model_field' },
    { action: 'model_draft.discarded', target: 'model_draft' },
  ])
})
