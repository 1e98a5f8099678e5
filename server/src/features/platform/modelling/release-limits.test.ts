import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  dealModel,
  field,
  type ModelBuilder,
  newModelBuilder,
  validityOf,
} from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import type { FieldDocument, ModelDocument } from '../../../shared/modelling/document.ts'

/** How much a model and a release may have. What is too much is named before it costs anything. */
let platform: Platform
let model: ModelBuilder
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())
beforeEach(async () => {
  model = await newModelBuilder(platform)
})

const many = <T>(count: number, make: (key: string) => T) => Array.from({ length: count }, (_, n) => make(`k${n}`))
const keyed = <T>(count: number, value: T) => Object.fromEntries(many(count, (key) => [key, value]))
const objects = (count: number, fields: readonly FieldDocument[]) =>
  many(count, (objectKey) => ({ ...dealModel(fields).objects[0]!, objectKey }))
const save = (document: ModelDocument) => model.ask('PUT', '/model/draft', { document })

describe('a document', () => {
  const role = { label: 'R', objects: {} }
  const relationship = { label: 'R', inverseLabel: 'R', cardinality: 'many-to-many', from: 'deal', to: 'deal' } as const
  const read = { read: true }

  const tooMuch: readonly (readonly [what: string, path: string, document: object])[] = [
    ['roles', 'document.roles', { roles: keyed(201, role) }],
    [
      'relationships',
      'document.relationships',
      { relationships: keyed(501, { ...relationship, deleteRule: 'unlink' }) },
    ],
    ['locations', 'document.locations', { locations: keyed(1001, { label: 'L' }) }],
    ['objects of a role', 'document.roles.r.objects', { roles: { r: { ...role, objects: keyed(601, read) } } }],
    [
      'fields of a role',
      'document.roles.r.objects.deal.fields',
      { roles: { r: { ...role, objects: { deal: { read: true, fields: keyed(501, { read: true, write: true }) } } } } },
    ],
    ['actions', 'document.roles.r.actions', { roles: { r: { ...role, actions: many(501, (key) => key) } } }],
  ]
  test.each(tooMuch)('with too many %s is refused, and told only that', async (_what, path, parts) => {
    const { status, json } = await save({ ...dealModel(), ...parts })
    expect([status, json['code']]).toEqual([400, 'validation_failed'])
    expect(json['details']).toEqual([expect.objectContaining({ field: path })])
  })

  test('with what is not known in one of many roles is told which', async () => {
    const roles = { ...keyed(100, role), odd: { ...role, ...keyed(60, 1) } }
    const { json } = await save({ ...dealModel(), roles })
    expect(json['details']).toEqual([
      expect.objectContaining({ field: 'document.roles.odd.k0', code: 'unknown_field' }),
    ])
  })

  test('may have a hundred roles, and none more than 200 when they come one by one', async () => {
    expect((await save({ ...dealModel(), roles: keyed(200, role) })).status).toBe(200)
    const { status, json } = await model.ask('PUT', '/model/draft/roles/more', { part: role })
    expect([status, json['details']]).toEqual([400, [expect.objectContaining({ field: 'document.roles' })]])
  })

  test('gets no more fields one by one than at once', async () => {
    expect((await save(dealModel(many(299, (key) => field(key))))).status).toBe(200)
    const { status, json } = await model.ask('PUT', '/model/draft/objects/deal/fields/more', {
      field: { label: 'More', dataType: 'text' },
    })
    expect([status, json['details']]).toEqual([400, [expect.objectContaining({ field: 'document.objects.0.fields' })]])
  })

  test('with too many fields in all, or actions that are named twice, is not valid', async () => {
    const flat = many(200, (fieldKey) => ({ fieldKey, label: 'F', dataType: 'text' as const }))
    await save({ objects: objects(50, flat) })
    expect((await validityOf(model)).issues).toEqual([
      { path: 'objects', code: 'model_too_large', message: 'The model has 10050 fields; 10000 is the most.' },
    ])
    await save({ ...dealModel(), roles: { r: { ...role, actions: ['close', 'open', 'close'] } } })
    expect((await validityOf(model)).issues.map(({ path, code }) => [path, code])).toEqual([
      ['roles/r/actions', 'duplicate_key'],
    ])
  })

  test('with a pattern that becomes a large program, or with many of them, is not valid, and none is compiled', async () => {
    const withPattern = (pattern: string) => (key: string) => field(key, { validation: { pattern } })
    await save(dealModel([withPattern('((a?){100}){100}')('x')]))
    const [one] = (await validityOf(model)).issues
    expect([one!.path, one!.message]).toEqual(['objects/deal/fields/x', expect.stringContaining('repeats too much')])
    await save(dealModel(many(30, withPattern('(a?){200}'))))
    expect((await validityOf(model)).issues.map(({ code }) => code)).toEqual(['model_too_large'])
    expect((await model.ask('POST', '/model/draft:publish')).json['code']).toBe('model_invalid')
  })
})

describe('a release', () => {
  test('that would make too many columns at once is published in parts', async () => {
    const wide = many(290, (fieldKey) => field(fieldKey, { dataType: 'boolean' }))
    const refused = await model.publish({ objects: objects(11, wide) })
    expect([refused.status, refused.json.code]).toEqual([409, 'model_change_refused'])
    expect(refused.json.details).toEqual([
      {
        field: 'objects',
        code: 'release_too_large',
        message: 'The release would make 3366 columns; 3000 is the most. Publish it in parts.',
      },
    ])
    expect((await validityOf(model)).issues.map(({ code }) => code)).toEqual(['release_too_large'])
    await model.released(dealModel())
  })

  test('to a table that has had all its columns is refused by name', async () => {
    await model.released(dealModel())
    const [place] = await platform.db.database.as('portico_owner', (tx) =>
      tx.rows<{ schema: string }>(
        sql`SELECT schema_name AS schema FROM portico.application WHERE app_id = ${model.saasAppId}`,
      ),
    )
    const columns = (change: string) => many(1580, (key) => `${change} COLUMN ${key}`).join(', ')
    const deals = `"${place!.schema}".deal`
    await platform.db.database.alone(`ALTER TABLE ${deals} ${columns('ADD').replaceAll(/(k\d+)/g, '$1 boolean')}`)
    await platform.db.database.alone(`ALTER TABLE ${deals} ${columns('DROP')}`)
    const wide = many(10, (fieldKey) => field(fieldKey, { dataType: 'boolean' }))
    const refused = await model.publish(dealModel(wide))
    expect([refused.status, refused.json.code]).toEqual([409, 'model_change_refused'])
    const [detail] = refused.json.details!
    expect([detail!.field, detail!.code]).toEqual(['objects/deal', 'columns_used_up'])
    expect(detail!.message).toContain('deal: 10 columns are wanted, and 4 are left.')
    await model.released(dealModel(wide.slice(0, 4)))
  })
})
