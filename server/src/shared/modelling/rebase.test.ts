import { describe, expect, test } from 'vitest'
import { dealModel, field } from '../../../test/support/model-builder.ts'
import type { ModelDocument, RoleDocument } from './document.ts'
import { normalised } from './normalise.ts'
import { rebase } from './rebase.ts'

const a = field('a')
const renamed = (label: string) => ({ ...a, label })
const object = (objectKey: string) => ({ ...dealModel().objects[0]!, objectKey })
const sales = (objects: RoleDocument['objects'], label = 'Sales'): Partial<ModelDocument> => ({
  roles: { sales: { label, objects } },
})
const reading = { read: true }
const base = dealModel([a])

/** The keys of the fields of the deals, in order. */
const fieldsOf = ({ objects }: ModelDocument) => objects[0]!.fields.map(({ fieldKey }) => fieldKey)

describe('what one side changes is as that side has it', () => {
  test.each<[string, ModelDocument, ModelDocument, ModelDocument, ModelDocument]>([
    [
      'two fields',
      base,
      dealModel([a, field('b')]),
      dealModel([a, field('c')]),
      dealModel([a, field('c'), field('b')]),
    ],
    ['a field and its object', base, dealModel([renamed('A')]), withLabel(base), withLabel(dealModel([renamed('A')]))],
    ['a field goes', base, dealModel(), dealModel([a, field('c')]), dealModel([field('c')])],
    ['a field went', base, dealModel([a, field('b')]), dealModel(), dealModel([field('b')])],
    ['the same', base, dealModel([renamed('A')]), dealModel([renamed('A')]), dealModel([renamed('A')])],
    [
      'two objects',
      base,
      { objects: [...base.objects, object('x')] },
      { objects: [...base.objects, object('y')] },
      { objects: [...base.objects, object('y'), object('x')] },
    ],
    [
      'the rights of a role to two objects',
      dealModel([], sales({})),
      dealModel([], sales({ deal: reading })),
      dealModel([], sales({ company: reading }, 'Sellers')),
      dealModel([], sales({ deal: reading, company: reading }, 'Sellers')),
    ],
    [
      'locations and relationships',
      base,
      { ...base, locations: { north: { label: 'North' } } },
      { ...base, locations: { south: { label: 'South' } } },
      { ...base, locations: { north: { label: 'North' }, south: { label: 'South' } } },
    ],
  ])('%s', (_what, from, ours, theirs, merged) => {
    const found = rebase(from, ours, theirs)
    expect(found.conflicts).toEqual([])
    expect(found.document).toEqual(normalised(merged))
    // Begun from the newest release it stays as it is.
    expect(rebase(theirs, found.document, theirs)).toEqual(found)
  })

  test('who has moved fields says their order', () => {
    const from = dealModel([a, field('b')])
    const moved = { objects: [{ ...object('deal'), fields: [field('b'), a, field('name')] }] }
    const grown = dealModel([a, field('c'), field('b')])
    for (const [ours, theirs] of [
      [moved, grown],
      [grown, moved],
    ] as const) {
      const { document, conflicts } = rebase(from, ours, theirs)
      expect([fieldsOf(document), conflicts]).toEqual([['b', 'a', 'c', 'name'], []])
    }
  })
})

describe('what both change differently is named', () => {
  const moved = (...keys: string[]) => ({ objects: [{ ...object('deal'), fields: keys.map((key) => field(key)) }] })
  test.each<[string, ModelDocument, ModelDocument, ModelDocument, string[]]>([
    ['a field', base, dealModel([renamed('A')]), dealModel([renamed('B')]), ['objects/deal/fields/a']],
    [
      'a new field',
      base,
      dealModel([a, field('b')]),
      dealModel([a, { ...field('b'), label: 'B' }]),
      ['objects/deal/fields/b'],
    ],
    ['a field that went', base, dealModel([renamed('A')]), dealModel(), ['objects/deal/fields/a']],
    ['a field of an object that went', base, dealModel([a, field('b')]), { objects: [] }, ['objects/deal']],
    ['an object that goes', base, { objects: [] }, dealModel([renamed('A')]), ['objects/deal']],
    ['an object', base, withLabel(base, 'X'), withLabel(base, 'Y'), ['objects/deal']],
    [
      'the order of fields',
      moved('name', 'a', 'b'),
      moved('a', 'name', 'b'),
      moved('b', 'a', 'name'),
      ['objects/deal'],
    ],
    [
      'the rights of a role to an object',
      dealModel([], sales({})),
      dealModel([], sales({ deal: reading })),
      dealModel([], sales({ deal: { ...reading, create: true } })),
      ['roles/sales/objects/deal'],
    ],
    ['a role', dealModel([], sales({})), dealModel([], sales({}, 'X')), dealModel([], sales({}, 'Y')), ['roles/sales']],
    [
      'a location',
      base,
      { ...base, locations: { north: { label: 'X' } } },
      { ...base, locations: { north: { label: 'Y' } } },
      ['locations/north'],
    ],
    ['what the draft names twice', base, { objects: [object('deal'), object('deal')] }, base, ['objects/deal']],
  ])('%s', (_what, from, ours, theirs, conflicts) => {
    expect(rebase(from, ours, theirs).conflicts).toEqual(conflicts)
  })
})

function withLabel({ objects }: ModelDocument, label = 'Opportunity'): ModelDocument {
  return { objects: objects.map((one) => ({ ...one, label })) }
}
