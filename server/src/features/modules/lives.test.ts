import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApplication } from '../../../test/support/application.ts'
import type { Answer } from '../../../test/support/record-service.ts'
import { operationId } from './declaration.ts'
import { modules } from './descriptors.ts'
import type { Module, ModuleField } from './module.ts'

/** The life of a record in every module, told by its descriptor: what its fields show as examples is what it is made of. */
const plan = {
  modules: true,
  organizations: { only: { users: { owner: { owner: true } } } },
} as const

let application: Awaited<ReturnType<typeof startApplication<typeof plan>>>
beforeAll(async () => {
  application = await startApplication(plan, { objects: [] })
})
afterAll(() => application.close())

type Row = Record<string, unknown> & { readonly recordId: string; readonly revision: number }
interface Sent {
  readonly recordId?: string
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

function ask<T = Row>(module: Module, verb: string, { recordId, ...sent }: Sent = {}): Promise<Answer<T>> {
  const params = { saasAppId: application.appId, ...(recordId !== undefined && { recordId }) }
  return application.running.send<T>(operationId(module, verb), application.organizations.only.users.owner, {
    params,
    ...sent,
  })
}

/** Ids of other records and users are none that an example could know; what the service sets is not sent. */
const isWritten = (field: ModuleField) =>
  !field.readOnly && !['reference', 'user', 'autoNumber'].includes(field.dataType)

function exampleOf({ fields, states }: Module): Record<string, unknown> {
  const written = fields.filter((field) => isWritten(field) && field.fieldKey !== states?.field)
  return Object.fromEntries(written.map((field) => [field.fieldKey, field.example]))
}

interface List {
  readonly items: readonly Row[]
  readonly totalRecords: number
  readonly totalIsExact: boolean
}

describe.each(modules.map((module) => [module.key, module] as const))('%s', (_, module) => {
  const example = exampleOf(module)
  const required = Object.fromEntries(
    module.fields
      .filter((field) => field.required && isWritten(field) && field.default === undefined)
      .map((field) => [field.fieldKey, field.example]),
  )

  test('a record is made of the examples, found, changed, archived and restored', async () => {
    const created = await ask(module, 'Create', { body: example })
    expect(created.status, JSON.stringify(created.body)).toBe(201)
    const { recordId } = created.body
    expect(created.headers['location']).toBe(`/v1/apps/${application.appId}/modules/${module.key}/${recordId}`)
    const got = await ask(module, 'Get', { recordId })
    expect(got.body).toEqual(created.body)
    expect(got.headers['etag']).toBe('"1"')

    const ids = async (query: Readonly<Record<string, unknown>>) =>
      (await ask<List>(module, 'List', { query })).body.items.map((row) => row.recordId)
    const total = async () => (await ask<{ totalRecords: number }>(module, 'Count')).body.totalRecords
    expect(await ids({})).toEqual([recordId])
    expect(await total()).toBe(1)
    const name = String(created.body[module.nameField])
    const nameField = module.fields.find((field) => field.fieldKey === module.nameField)!
    if (nameField.searchable) {
      expect(await ids({ search: name.toUpperCase() })).toEqual([recordId])
      expect(await ids({ search: `${name}-nowhere` })).toEqual([])
    }

    const change = module.fields.find((field) => field.fieldKey === 'tags') ? { tags: ['changed'] } : {}
    const updated = await ask(module, 'Update', { recordId, body: { ...change, expectedRevision: 1 } })
    expect(updated.status, JSON.stringify(updated.body)).toBe(200)
    expect(updated.body).toMatchObject(change)
    const stale = await ask(module, 'Update', { recordId, body: { ...change, expectedRevision: 99 } })
    expect(stale.body.code).toBe('revision_conflict')

    const archived = await ask(module, 'Archive', { recordId })
    expect(archived.body['archivedAt']).not.toBeNull()
    expect(await ids({})).toEqual([])
    expect(await total()).toBe(0)
    expect((await ask(module, 'Update', { recordId, body: change })).body.code).toBe('record_archived')
    const restored = await ask(module, 'Restore', { recordId, body: {} })
    expect(restored.body['archivedAt']).toBeNull()
    expect(await ids({})).toEqual([recordId])

    const history = await ask<{ items: readonly { operation: string; changes: readonly { field: string }[] }[] }>(
      module,
      'GetHistory',
      { recordId },
    )
    const told = history.body.items.map((item) => item.operation)
    expect(told.filter((one) => one !== 'updated')).toEqual(['restored', 'archived', 'created'])
    const related = await ask(module, 'ListRelationships', { recordId })
    expect(related.body).toEqual({ items: [], nextCursor: null })
  })

  test('what is wrong is named as the flat body has it', async () => {
    const unknown = await ask(module, 'Create', { body: { ...example, surprise: 1 } })
    expect(unknown.body).toMatchObject({ code: 'unknown_field', details: [{ field: 'surprise' }] })
    for (const fieldKey of Object.keys(required)) {
      const { [fieldKey]: _, ...rest } = example
      const missing = await ask(module, 'Create', { body: rest })
      expect(missing.body, fieldKey).toMatchObject({ code: 'required_field_missing', details: [{ field: fieldKey }] })
    }
    for (const { fieldKey, example: value } of module.fields.filter((field) => field.readOnly)) {
      const refused = await ask(module, 'Create', { body: { ...example, [fieldKey]: value } })
      expect(refused.body, fieldKey).toMatchObject({ code: 'field_read_only', details: [{ field: fieldKey }] })
    }
  })

  const { states } = module
  test.runIf(states)('it goes where its states lead, and nowhere else', async () => {
    const { field, initial, transitions } = states!
    const all = module.fields.find((one) => one.fieldKey === field)!.options!.map((option) => option.value)
    const created = await ask(module, 'Create', { body: { ...example, ...uniques(module) } })
    expect(created.status, JSON.stringify(created.body)).toBe(201)
    expect(created.body[field]).toBe(initial)
    const { recordId } = created.body
    for (const state of all.filter((one) => one !== initial && !(transitions[initial] ?? []).includes(one))) {
      const refused = await ask(module, 'Update', { recordId, body: { [field]: state } })
      expect(refused.body, state).toMatchObject({ code: 'state_transition_invalid', details: [{ field }] })
    }
    const ids = async (value: string) =>
      (await ask<List>(module, 'List', { query: { [field]: value } })).body.items.map((row) => row.recordId)
    expect(await ids(initial)).toContain(recordId)
    const outcomes: string[] = []
    for (const state of transitions[initial] ?? []) {
      const moved = await ask(module, 'Update', { recordId, body: { [field]: state } })
      outcomes.push(moved.status === 200 ? state : (moved.body.code as string))
      if (moved.status === 200) {
        expect(moved.body[field]).toBe(state)
        expect(await ids(state)).toEqual([recordId])
        expect(await ids(initial)).not.toContain(recordId)
        break
      }
    }
    expect(outcomes.at(-1), outcomes.join()).toBeOneOf(transitions[initial] as string[])
  })

  test('of a batch each item has its result, and its problems are named', async () => {
    const items = [
      { operation: 'create', ...example, ...uniques(module), externalKey: 'one' },
      { operation: 'create', ...example, ...uniques(module), externalKey: 'one' },
      { operation: 'update', externalKey: 'one', locationId: null },
      { operation: 'archive', externalKey: 'one' },
    ]
    const answer = await ask<{ results: readonly { status: number; error?: { code: string } }[] }>(module, 'Batch', {
      body: { items },
    })
    expect(
      answer.body.results.map((result) => [result.status, result.error?.code]),
      JSON.stringify(answer.body),
    ).toEqual([
      [201, undefined],
      [409, 'duplicate_value'],
      [200, undefined],
      [200, undefined],
    ])
    const [first] = module.fields.filter((field) => field.readOnly)
    const atomic = await ask(module, 'Batch', {
      body: { atomic: true, items: [{ operation: 'create', ...example, [first?.fieldKey ?? 'recordId']: 'x' }] },
    })
    expect(atomic.status).toBe(400)
    if (first) expect(atomic.body.details?.map((one) => one.field)).toEqual([`items[0].${first.fieldKey}`])
  })

  test('it is assigned', async () => {
    const { recordId } = (await ask(module, 'Create', { body: { ...example, ...uniques(module) } })).body
    const { userId } = application.organizations.only.users.owner
    const assigned = await ask(module, 'Assign', { recordId, body: { ownerUserId: userId, participants: [userId] } })
    expect(assigned.body).toMatchObject({ ownerUserId: userId, dataRoleId: null })
    const list = await ask<List>(module, 'List', { query: { ownerUserId: userId, includeTotal: 'true' } })
    expect(list.body).toMatchObject({ items: [{ recordId }], totalRecords: 1, totalIsExact: true })
    const nobody = await ask(module, 'Assign', { recordId, body: { ownerUserId: recordId } })
    expect(nobody.body).toMatchObject({ code: 'reference_not_found', details: [{ field: 'ownerUserId' }] })
  })
})

let uniqueValues = 0
/** Values that no other record has, for the fields that ask for it. */
function uniques({ fields }: Module): Record<string, unknown> {
  const unique = fields.filter((field) => field.unique && isWritten(field))
  return Object.fromEntries(unique.map((field) => [field.fieldKey, distinct(field)]))
}

function distinct({ example }: ModuleField): unknown {
  const suffix = String(++uniqueValues)
  return String(example).slice(0, -suffix.length) + suffix
}
