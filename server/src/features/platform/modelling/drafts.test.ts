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
import { normalised } from '../../../shared/modelling/normalise.ts'

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
    const told = issues.map(({ path, ...rest }) => ({ field: path, ...rest }))
    expect([valid, told]).toEqual([false, refused.json.details])
    const badPart = await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North', objects: {} } })
    expect([badPart.status, badPart.json.details?.[0]?.field]).toEqual([400, 'part.objects'])
  })

  test('follows what was published meanwhile, where it changes something else', async () => {
    await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North' } })
    await applyModel(platform.db.database, model.saasAppId, dealModel())
    const followed = await draftOf(model)
    expect(followed).toMatchObject({ revision: 2, basedOnRelease: 1 })
    expect(followed.document).toEqual(normalised(dealModel([], { locations: { north: { label: 'North' } } })))
    expect(await validityOf(model)).toEqual({ valid: true, issues: [] })
    // Who had read it before that release is told that it has changed.
    const part = { part: { label: 'South' }, expectedRevision: 1 }
    expect((await model.ask('PUT', '/model/draft/locations/south', part)).json.code).toBe('revision_conflict')
    const edited = await model.ask<Draft>('PUT', '/model/draft/locations/south', { ...part, expectedRevision: 2 })
    expect(edited.json).toMatchObject({ revision: 3, basedOnRelease: 1 })
    expect(await draftOf(model)).toEqual(edited.json)
    expect((await model.ask('POST', '/model/draft:publish', { expectedRevision: 3 })).status).toBe(201)
    const { document } = await draftOf(model)
    expect([document.objects.length, Object.keys(document.locations!)]).toEqual([1, ['north', 'south']])
  })

  test('that changes what was published meanwhile says where, until it is put as it was published', async () => {
    await model.released(dealModel([field('a')]))
    const put = (label: string, more = {}) =>
      model.ask<Draft>('PUT', '/model/draft/objects/deal/fields/a', { field: { label, dataType: 'text' }, ...more })
    await model.released(dealModel([field('a', { label: 'Second' })]))
    await put('Ours')
    await model.ask('PUT', '/model/draft/locations/north', { part: { label: 'North' } })
    expect((await model.ask('POST', '/model/releases/1:rollback')).status).toBe(201)
    for (const step of ['validate', 'publish']) {
      const { status, json } = await model.ask('POST', `/model/draft:${step}`)
      expect([status, json.code, json.details!.map(({ field: path }) => path)]).toEqual([
        409,
        'draft_outdated',
        ['objects/deal/fields/a'],
      ])
    }
    expect(await draftOf(model)).toMatchObject({ revision: 3, basedOnRelease: 2 })
    const again = await put('Mine', { expectedRevision: 3 })
    expect(again.json).toMatchObject({ revision: 4, basedOnRelease: 2 })
    expect((await draftOf(model)).revision).toBe(4)
    const settled = await put('a', { expectedRevision: 4 })
    expect(settled.json).toMatchObject({ revision: 5, basedOnRelease: 3 })
    await put('Ours')
    expect((await model.ask('POST', '/model/draft:publish')).status).toBe(201)
    expect((await draftOf(model)).document).toMatchObject({
      objects: [{ fields: [{ fieldKey: 'name' }, { fieldKey: 'a', label: 'Ours' }] }],
      locations: { north: { label: 'North' } },
    })
  })

  test('saved whole keeps what was published since its document was read', async () => {
    await model.released(dealModel())
    const { document, basedOnRelease } = await draftOf(model)
    await model.released(dealModel([field('a')]))
    const locations = { north: { label: 'North' } }
    const mine = { document: { ...document, locations }, basedOnRelease, expectedRevision: 0 }
    const saved = await model.ask<Draft>('PUT', '/model/draft', mine)
    expect(saved.json).toMatchObject({ basedOnRelease: 2, document: dealModel([field('a')], { locations }) })
    const none = await model.ask('PUT', '/model/draft', { document, basedOnRelease: 3 })
    expect([none.status, none.json.details?.[0]?.field]).toEqual([400, 'basedOnRelease'])
  })

  test('says who changed it, in the order of its schema', async () => {
    const empty = await model.ask<Draft & { updatedBy: object | null }>('GET', '/model/draft')
    expect(empty.json.updatedBy).toBeNull()
    const options = [{ label: 'Won', value: 'won' }]
    const state = { validation: { maximum: 3, minimum: 1 }, options, unique: true, dataType: 'select', label: 'State' }
    await model.ask('PUT', '/model/draft', { document: dealModel([{ fieldKey: 'state', ...state } as never]) })
    const { json, text } = await model.ask<{ updatedBy: object }>('GET', '/model/draft')
    expect(json.updatedBy).toEqual({ kind: 'builder', id: model.builder.builderId })
    const inOrder = JSON.stringify({
      objectKey: 'deal',
      ...{ label: 'Deal', pluralLabel: 'Deals', nameField: 'name' },
      fields: [
        { fieldKey: 'name', label: 'name', dataType: 'text' },
        {
          ...{ fieldKey: 'state', label: 'State', dataType: 'select', unique: true },
          options: [{ value: 'won', label: 'Won' }],
          validation: { minimum: 1, maximum: 3 },
        },
      ],
    })
    expect(text).toContain(inOrder)
    expect((await model.ask('GET', '/model/draft/diff')).text).toContain(`"after":${inOrder}`)
    await model.ask('POST', '/model/draft:publish')
    const release = await model.ask<{ publishedBy: object }>('GET', '/model/releases/1')
    expect(release.text.split(inOrder)).toHaveLength(3)
    expect(release.json.publishedBy).toEqual(json.updatedBy)
    await applyModel(platform.db.database, model.saasAppId, dealModel([field('b')]))
    expect((await model.ask('GET', '/model/releases/2')).json).toMatchObject({
      publishedBy: { kind: 'system', id: 'terminal' },
    })
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
