import sql from 'sql-template-tag'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { objectOf } from '../../../test/support/application.ts'
import { type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { applyModel, buildIndexes, ModelError } from './apply.ts'
import type { FieldDocument, ModelDocument } from './document.ts'

let running: RecordService
beforeAll(async () => {
  running = await startRecordService()
})
afterAll(() => running?.close())

const text = (fieldKey: string, more: Partial<FieldDocument> = {}): FieldDocument => ({
  fieldKey,
  label: fieldKey,
  dataType: 'text',
  ...more,
})
const note = (...fields: readonly FieldDocument[]) => objectOf('note', [text('title', { searchable: true }), ...fields])
const full = { read: true, create: true, update: true, archive: true }

interface FieldState {
  readonly fieldKey: string
  readonly dataType: string
  readonly indexState: string
  readonly searchable: boolean
}

/** An application of its own, with somebody who may do everything and somebody who reads what a role lets him. */
async function newApplication() {
  const { database } = running.db
  const tenant = await createTenant(database, {
    dataRoles: ['reader'],
    organizations: { a: { users: { owner: { owner: true }, reader: { roles: ['reader'] } } } },
  })
  const { owner, reader } = tenant.organizations.a.users
  const saasAppId = tenant.appId
  const schemaOf = async (objectKey: string) => {
    const { body } = await running.send<{ schemaRevision: number; fields: readonly FieldState[] }>(
      'developerObjectsGetSchema',
      owner,
      { params: { saasAppId, objectKey } },
    )
    return body
  }
  return {
    ...tenant,
    schemaOf,
    apply: (document: unknown) => applyModel(database, tenant.appId, document),
    owner: (objectKey = 'note') => running.records(saasAppId, owner, objectKey),
    reader: (objectKey = 'note') => running.records(saasAppId, reader, objectKey),
    stateOf: async (fieldKey: string) =>
      (await schemaOf('note')).fields.find((field) => field.fieldKey === fieldKey)?.indexState,
    /** Everything that the service keeps of the model, to compare. */
    definitions: () =>
      database.as('portico_owner', (tx) =>
        Promise.all([
          tx.rows(sql`SELECT * FROM portico.object_definition WHERE app_id = ${saasAppId} ORDER BY object_id`),
          tx.rows(sql`SELECT * FROM portico.field_definition WHERE app_id = ${saasAppId} ORDER BY field_id`),
          tx.rows(
            sql`SELECT * FROM portico.object_permission WHERE app_id = ${saasAppId} ORDER BY object_id, template_key`,
          ),
          tx.rows(
            sql`SELECT * FROM portico.field_permission WHERE app_id = ${saasAppId} ORDER BY field_id, template_key`,
          ),
          tx.rows(sql`SELECT table_name, column_name, data_type FROM information_schema.columns
            WHERE table_schema = ${tenant.schemaName} ORDER BY 1, 2`),
          tx.rows(sql`SELECT indexrelid::regclass::text AS name, indisvalid AS valid, indisunique AS "unique" FROM pg_index
            JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = ${tenant.schemaName}::regnamespace ORDER BY 1`),
        ]),
      ),
  }
}

type Applied = Awaited<ReturnType<typeof newApplication>>

/** Works on something else, so that what waits for old snapshots has to wait, and what locks the table has not. */
async function whileSomebodyReads(work: () => Promise<void>, after: () => Promise<void>): Promise<void> {
  await asAdministrator(running.db.connection, async (admin) => {
    await admin.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await admin.query('SELECT 1')
    try {
      await work()
    } finally {
      await admin.query('COMMIT')
    }
    await after()
  })
}

async function eventually(what: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + 10_000
  while (!(await what())) {
    if (Date.now() > until) throw new Error('It did not come to that in time.')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('a document', () => {
  test('is applied once: the second time nothing changes', async () => {
    const app = await newApplication()
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
    const app = await newApplication()
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
    const app = await newApplication()
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
    const app = await newApplication()
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
    const found = async (client: ReturnType<Applied['owner']>, search: string) =>
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
  let app: Applied
  beforeAll(async () => {
    app = await newApplication()
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
      { objects: [{ ...note(), fields: [] }] },
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

describe('beside work on the same object', () => {
  test('an indexed field is added without a failed request, and says when it is ready', async () => {
    const app = await newApplication()
    await app.apply({ objects: [note()] })
    const titles = Array.from({ length: 200 }, (_, n) => ({ operation: 'create', fields: { title: `Note ${n}` } }))
    const { body } = await app.owner().batch(titles)
    const ids = body.results.map((result) => result.record!.recordId)

    let writing = true
    let requests = 0
    const failures: unknown[] = []
    const write = async (writer: number) => {
      for (let n = writer; writing; n += 4) {
        const client = app.owner()
        const answers = [
          await client.create({ fields: { title: `Writer ${writer}` } }),
          await client.update(ids[n % ids.length]!, { fields: { title: `Changed ${n}` } }),
          await client.search({ filter: { field: 'title', op: 'startsWith', value: 'changed' }, sort: 'title_asc' }),
        ]
        requests += answers.length
        failures.push(...answers.filter((answer) => answer.status > 201))
      }
    }
    const writers = [1, 2, 3, 4].map(write)
    await eventually(async () => requests > 20)
    const before = requests
    let applied: Promise<unknown> | undefined
    await whileSomebodyReads(
      async () => {
        applied = app.apply({ objects: [note(text('extra', { indexed: true }), text('code', { unique: true }))] })
        await eventually(async () => (await app.stateOf('extra')) === 'building')
        // It can be used while it is being built.
        const [first, second] = ids as [string, string]
        expect((await app.owner().update(first, { fields: { extra: 'Early' } })).status).toBe(200)
        const filter = { field: 'extra', op: 'eq', value: 'early' }
        expect((await app.owner().search({ filter, sort: 'extra_desc' })).body.records).toHaveLength(1)
        expect((await app.owner().update(second, { fields: { extra: 'Early' } })).status).toBe(200)
        expect(await app.stateOf('extra')).toBe('building')
      },
      async () => {
        await applied
      },
    )
    expect([await app.stateOf('extra'), await app.stateOf('code')]).toEqual(['ready', 'ready'])
    writing = false
    await Promise.all(writers)
    expect(failures).toEqual([])
    expect(requests).toBeGreaterThan(before)
    const [, , , , , indexes] = await app.definitions()
    expect((indexes as { valid: boolean }[]).every((index) => index.valid)).toBe(true)
  }, 60_000)

  test('somebody who reads for long neither stops it for ever nor makes it stop the others', async () => {
    const app = await newApplication()
    await app.apply({ objects: [note()] })
    const { body } = await app.owner().create({ fields: { title: 'Here' } })
    await asAdministrator(running.db.connection, async (admin) => {
      await admin.query('BEGIN')
      await admin.query(`SELECT FROM "${app.schemaName}".note`)
      const applied = app.apply({ objects: [note(text('extra'))] })
      const answers = []
      const until = Date.now() + 1400
      while (Date.now() < until) answers.push(await app.owner().get(body.recordId))
      await admin.query('COMMIT')
      expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
      expect(answers.length).toBeGreaterThan(3)
      expect(await applied).toEqual({ objectsAdded: 0, fieldsAdded: 1 })
    })
  })

  test('several at once: each does what the others have left, and every index is built once', async () => {
    const app = await newApplication()
    await app.apply({ objects: [note()] })
    await app.owner().batch(Array.from({ length: 100 }, (_, n) => ({ operation: 'create', fields: { title: `${n}` } })))
    for (let round = 0; round < 3; round++) {
      const fields = ['a', 'b', 'c'].map((name) =>
        text(`${name}${round}`, { indexed: name !== 'b', unique: name === 'b' }),
      )
      const results = await Promise.all(
        Array.from({ length: 3 }, (_, n) =>
          app.apply({
            objects: [note(...fields), objectOf(`o${round}`, [text('a')]), objectOf(`p${round}-${n}`, [text('a')])],
          }),
        ),
      )
      expect(results.reduce((sum, result) => sum + result.fieldsAdded, 0)).toBe(3 + 1 + 3)
      expect(results.reduce((sum, result) => sum + result.objectsAdded, 0)).toBe(1 + 3)
      for (const field of fields)
        expect([field.fieldKey, await app.stateOf(field.fieldKey)]).toEqual([field.fieldKey, 'ready'])
    }
    const [, , , , , indexes] = await app.definitions()
    const built = (indexes as { name: string; valid: boolean }[]).filter((index) => index.name.includes('.ix_'))
    expect(built.map((index) => index.valid)).toEqual(Array(9).fill(true))
  }, 60_000)

  test('an index that cannot be built says so, hinders nobody, and is built when it can be', async () => {
    const app = await newApplication()
    const document = { objects: [note(text('code', { unique: true }))] }
    await app.apply({ objects: [note()] })
    await app.apply(document)
    // As if the service had ended before it could build the index.
    const [, , , , , indexes] = await app.definitions()
    const { name } = (indexes as { name: string }[]).find((index) => index.name.includes('.ix_'))!
    await running.db.database.alone(`DROP INDEX ${name}`)
    const building = () =>
      running.db.database.as('portico_owner', async (tx) => {
        await tx.rows(
          sql`UPDATE portico.field_definition SET index_state = 'building' WHERE app_id = ${app.appId} AND field_key = 'code'`,
        )
        await tx.rows(sql`SELECT portico.bump_epoch(${app.appId})`)
      })
    await building()
    const made = await Promise.all(['Same', 'sAME'].map((code) => app.owner().create({ fields: { title: 'T', code } })))
    expect(made.map((answer) => answer.status)).toEqual([201, 201])
    await buildIndexes(running.db.database, app.appId)
    expect(await app.stateOf('code')).toBe('failed')
    expect((await app.owner().create({ fields: { title: 'T', code: 'Other' } })).status).toBe(201)
    await app.owner().update(made[0]!.body.recordId, { fields: { code: 'Own' } })
    expect(await app.apply(document)).toEqual({ objectsAdded: 0, fieldsAdded: 0 })
    expect(await app.stateOf('code')).toBe('ready')
    expect((await app.owner().create({ fields: { title: 'T', code: 'OTHER' } })).body.code).toBe('duplicate_value')
  })
})
