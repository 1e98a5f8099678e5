import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { objectOf } from '../../../test/support/application.ts'
import { type ModelledApplication, newApplication, note, text } from '../../../test/support/modelled-application.ts'
import { type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { applyModel, ModelError } from './apply.ts'
import type { FieldDocument, ModelDocument } from './document.ts'

let running: RecordService
beforeAll(async () => {
  running = await startRecordService()
})
afterAll(() => running?.close())

const full = { read: true, create: true, update: true, archive: true }

describe('a document', () => {
  test('is applied once: the second time nothing changes', async () => {
    const app = await newApplication(running)
    const document: ModelDocument = {
      objects: [
        note(text('body', { indexed: true }), text('code', { unique: true }), {
          fieldKey: 'folder',
          label: 'Folder',
          dataType: 'reference',
          references: 'long-folder',
        }),
        objectOf('long-folder', [
          text('title'),
          { fieldKey: 'parent', dataType: 'reference', references: 'long-folder' },
        ]),
      ],
      roles: {
        reader: { label: 'Reader', objects: { note: { read: true, fields: { body: { read: false, write: false } } } } },
      },
    }
    expect(await app.apply(document)).toEqual({ objectsAdded: 2, fieldsAdded: 6 })
    const before = await app.definitions()
    expect(await app.apply(document)).toEqual({ objectsAdded: 0, fieldsAdded: 0 })
    expect(await app.definitions()).toEqual(before)
    const { schemaRevision, fields } = await app.schemaOf('note')
    expect(schemaRevision).toBe(1)
    expect(fields.map((field) => [field.fieldKey, field.indexState])).toEqual([
      ['title', 'none'],
      ['body', 'ready'],
      ['code', 'ready'],
      ['folder', 'ready'],
    ])
  })

  test('adds to what is there, and takes nothing away', async () => {
    const app = await newApplication(running)
    await app.apply({ objects: [note(text('body'))] })
    const { body: old } = await app.owner().create({ fields: { title: 'Old', body: 'Kept' } })
    const added = {
      objects: [
        note(
          { fieldKey: 'amount', label: 'Amount', dataType: 'decimal', indexed: true },
          text('code', { unique: true }),
          {
            fieldKey: 'tag',
            label: 'Tag',
            dataType: 'reference',
            references: 'tag',
          },
        ),
        objectOf('tag', [text('name')]),
      ],
    }
    expect(await app.apply(added)).toEqual({ objectsAdded: 1, fieldsAdded: 4 })
    expect((await app.schemaOf('note')).schemaRevision).toBe(2)
    const empty = { amount: null, code: null, tag: null }
    expect((await app.owner().get(old.recordId)).body.fields).toEqual({ title: 'Old', body: 'Kept', ...empty })
    const { body: tag } = await app.owner('tag').create({ fields: { name: 'New' } })
    const fields = { amount: '1.5', code: 'A', tag: tag.recordId }
    expect((await app.owner().update(old.recordId, { fields })).body).toMatchObject({ revision: 2, fields })
    expect((await app.owner().create({ fields: { title: 'Two', code: 'a' } })).body.code).toBe('duplicate_value')
  })

  test('sets the rights of the roles that it names, and of no others', async () => {
    const app = await newApplication(running)
    const grant = (rights: object) => ({
      objects: [],
      roles: { reader: { label: 'Reader', objects: { note: rights } } },
    })
    await app.apply({ objects: [note(text('body'))] })
    await app.owner().create({ fields: { title: 'T', body: 'B' } })
    const seen = async () => (await app.reader().search({})).body.records?.map((record) => record.fields)
    expect(await seen()).toBeUndefined()
    await app.apply(grant({ read: true }))
    expect(await seen()).toEqual([{ title: 'T', body: 'B' }])
    await app.apply(grant({ read: true, fields: { body: { read: false, write: false } } }))
    expect(await seen()).toEqual([{ title: 'T' }])
    await app.apply({ objects: [], roles: { other: { label: 'Other', objects: { note: full } } } })
    expect(await seen()).toEqual([{ title: 'T' }])
    await app.apply(grant({ read: true, create: true }))
    expect(await seen()).toEqual([{ title: 'T', body: 'B' }])
    await app.apply(grant({ read: false }))
    expect(await seen()).toBeUndefined()
  })

  test('keeps the words of each field apart, whatever is added later', async () => {
    const app = await newApplication(running)
    const hide = (...keys: readonly string[]) => ({
      reader: {
        label: 'Reader',
        objects: {
          note: { read: true, fields: Object.fromEntries(keys.map((key) => [key, { read: false, write: false }])) },
        },
      },
    })
    await app.apply({ objects: [note(text('secret', { searchable: true }))], roles: hide('secret') })
    const { body: first } = await app.owner().create({ fields: { title: 'apple', secret: 'banana' } })
    await app.apply({
      objects: [note(text('early', { searchable: true }), text('plain'), text('late', { searchable: true }))],
    })
    await app.apply({ objects: [], roles: hide('secret', 'late') })
    const { body: second } = await app.owner().create({
      fields: { title: 'cherry', secret: 'damson', early: 'elder', plain: 'fig', late: 'grape' },
    })
    const found = async (client: ReturnType<ModelledApplication['owner']>, search: string) =>
      (await client.search({ search })).body.records.map((record) => record.recordId)
    const words = { apple: first, banana: first, cherry: second, damson: second, elder: second, grape: second }
    for (const [word, { recordId }] of Object.entries(words)) {
      expect([word, await found(app.owner(), word)]).toEqual([word, [recordId]])
      const readable = ['apple', 'cherry', 'elder'].includes(word)
      expect([word, await found(app.reader(), word)]).toEqual([word, readable ? [recordId] : []])
    }
    expect(await found(app.owner(), 'fig')).toEqual([])
    // A field that became searchable for nobody yet: what is written next is found.
    await app.owner().update(first.recordId, { fields: { late: 'huckle' } })
    expect(await found(app.owner(), 'huckle apple')).toEqual([first.recordId])
    expect(await found(app.reader(), 'huckle')).toEqual([])
  })
})

const select = (more: object) => ({ fieldKey: 'x', label: 'X', ...more }) as FieldDocument
/** What is wrong, and words of the refusal. */
const refused: readonly (readonly [what: string, document: object, message: RegExp])[] = [
  [
    'another type',
    { objects: [note({ ...text('body'), dataType: 'integer' })] },
    /body is of type text and cannot become integer/,
  ],
  ['a field twice', { objects: [note(text('x'), text('x'))] }, /names a field twice/],
  ['an object twice', { objects: [objectOf('x', [text('a')]), objectOf('x', [text('b')])] }, /x .*twice/],
  ['a reserved name', { objects: [note(text('revision'))] }, /reserved/],
  ['a name of JavaScript', { objects: [note(text('constructor'))] }, /reserved/],
  [
    'a reference to nothing',
    { objects: [note(select({ dataType: 'reference', references: 'nobody' }))] },
    /does not exist/,
  ],
  ['a reference without an object', { objects: [note(select({ dataType: 'reference' }))] }, /references/],
  ['text with a reference', { objects: [note(text('x', { references: 'note' }))] }, /references/],
  ['a select without options', { objects: [note(select({ dataType: 'select' }))] }, /needs options/],
  ['text with options', { objects: [note(text('x', { options: [{ value: 'a', label: 'A' }] }))] }, /has no options/],
  [
    'an option twice',
    {
      objects: [
        note(
          select({
            dataType: 'select',
            options: [
              { value: 'a', label: 'A' },
              { value: 'a', label: 'B' },
            ],
          }),
        ),
      ],
    },
    /option twice/,
  ],
  ['a searchable number', { objects: [note(select({ dataType: 'integer', searchable: true }))] }, /searchable/],
  ['an indexed long text', { objects: [note(select({ dataType: 'longText', indexed: true }))] }, /indexed/],
  [
    'a unique list',
    { objects: [note(select({ dataType: 'multiSelect', unique: true, options: [{ value: 'a', label: 'A' }] }))] },
    /unique/,
  ],
  [
    'a required number of the service',
    { objects: [note(select({ dataType: 'autoNumber', required: true }))] },
    /required/,
  ],
  ['a name field that is not there', { objects: [objectOf('x', [text('a')], 'b')] }, /name field/],
  ['a name field of numbers', { objects: [objectOf('x', [select({ dataType: 'integer' })])] }, /name field/],
  ['a pattern that is none', { objects: [note(text('x', { validation: { pattern: '(' } }))] }, /pattern/],
  ['a pattern of another dialect', { objects: [note(text('x', { validation: { pattern: '(?<=a)b' } }))] }, /pattern/],
  [
    'limits the wrong way round',
    { objects: [note(text('x', { validation: { minLength: 3, maxLength: 2 } }))] },
    /limits/,
  ],
  [
    'a range the wrong way round',
    { objects: [objectOf('y', [text('a'), select({ dataType: 'integer', validation: { minimum: 3, maximum: 2 } })])] },
    /limits/,
  ],
  ['rights to nothing', { objects: [], roles: { r: { label: 'R', objects: { nobody: full } } } }, /does not exist/],
  [
    'rights to no field',
    {
      objects: [],
      roles: { r: { label: 'R', objects: { note: { ...full, fields: { z: { read: true, write: true } } } } } },
    },
    /does not exist/,
  ],
]

describe('a document that cannot be applied', () => {
  let app: ModelledApplication
  beforeAll(async () => {
    app = await newApplication(running)
    await app.apply({ objects: [note(text('body'))], roles: { reader: { label: 'Reader', objects: { note: full } } } })
  })

  test.each(refused)('%s is refused in words, and nothing of it stays', async (_what, document, message) => {
    const before = await app.definitions()
    const good = objectOf('good', [text('a')])
    const { objects = [], roles } = document as ModelDocument
    const whole = { objects: [good, ...objects], ...(roles && { roles }) }
    const refusal = await app.apply(whole).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(ModelError)
    expect((refusal as Error).message).toMatch(message)
    expect(await app.definitions()).toEqual(before)
  })

  test('what has the wrong shape is refused by its schema', async () => {
    for (const document of [
      ...[null, {}, [], { objects: {} }, { objects: [], more: 1 }],
      ...['Note', 'note_book', '1note', '', 'x'.repeat(51), 'a"b'].map((key) => ({
        objects: [objectOf(key, [text('a')])],
      })),
      ...['Title', '1a', 'a-b', 'a b', '__proto__', 'a"; --', 'x'.repeat(51)].map((key) => ({
        objects: [note(text(key))],
      })),
      { objects: [note(select({ dataType: 'money' }))] },
      { objects: [note({ ...text('x'), label: '' })] },
      { objects: [], roles: { 'Bad Role': { label: 'x', objects: {} } } },
    ]) {
      await expect(app.apply(document)).rejects.toMatchObject({
        code: expect.stringMatching(/validation_failed|unknown_field/),
      })
    }
  })

  test('an application that is not there', async () => {
    const nowhere = applyModel(running.db.database, '0199a1b2-0000-7000-8000-0000000000aa', { objects: [note()] })
    await expect(nowhere).rejects.toBeInstanceOf(ModelError)
  })
})
