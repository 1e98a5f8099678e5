import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { patienceMs, runs, seed } from '../../../test/support/seed.ts'
import { Failure } from '../../kernel/errors.ts'
import { assertValid, validatorOf } from '../../kernel/validation.ts'
import { dataTypes } from '../../shared/catalogue/data-types.ts'
import type { Field } from '../../shared/catalogue/field.ts'
import { ModelDocument } from '../../shared/modelling/document.ts'
import { problemsOf } from '../../shared/modelling/problems.ts'
import { modules } from './descriptors.ts'
import type { Module, ModuleField, ModuleStates, ModuleValues } from './module.ts'

/** What must hold of every descriptor, and of what it works out, whatever its module is about. */
const moment = { now: '2026-09-14T09:30:00.000Z', userId: '0199a1b2-0000-7000-8000-0000000000dd' }
const later = { ...moment, now: '2026-09-15T10:00:00.000Z' }
const withStates = modules.filter((module): module is Module & { states: ModuleStates } => module.states !== undefined)

test('there are the nineteen modules of the contract, in its order', () => {
  expect(modules.map((module) => module.key).join(' ')).toBe(
    'contacts companies leads deals tasks notes activities calendar-events appointments inbox tickets products quotes ' +
      'orders invoices payments documents projects knowledge-articles',
  )
})

test('together they are a model that an application could publish', () => {
  const document = { objects: modules.map(objectOf) }
  assertValid(ModelDocument, document)
  // The name of a contact is the name of its record, too: the engine keeps both in one place.
  expect(problemsOf(document).map((issue) => issue.message)).toEqual(['contacts.displayName is a reserved name.'])
})

function objectOf({ key, label, pluralLabel, nameField, fields }: Module): ModelDocument['objects'][number] {
  return {
    objectKey: key,
    label,
    pluralLabel,
    nameField,
    fields: fields.map((field) => ({
      fieldKey: field.fieldKey,
      label: field.label,
      dataType: field.dataType,
      required: field.required ?? false,
      unique: field.unique ?? false,
      indexed: field.indexed ?? false,
      searchable: field.searchable ?? false,
      validation: limitsOf(field),
      ...(field.options && { options: field.options.map((option) => ({ ...option })) }),
      ...(field.references !== undefined && { references: field.references }),
    })),
  }
}

function limitsOf({ minLength, maxLength, pattern, minimum, maximum, scale }: ModuleField) {
  const limits = { minLength, maxLength, pattern, minimum, maximum, scale }
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))
}

test('relationships have a key of their own and lead to modules', () => {
  const all = modules.flatMap((module) => module.relationships.map((one) => ({ ...one, from: module.key })))
  expect(new Set(all.map((one) => one.relationshipKey)).size).toBe(all.length)
  for (const { relationshipKey, from, to, label, inverseLabel } of all) {
    expect(relationshipKey).toMatch(new RegExp(`^${from.replaceAll('-', '_')}_[a-z_]+$`))
    expect(modules.map((module) => module.key)).toContain(to)
    expect(label).not.toBe(inverseLabel)
  }
})

describe.each(modules.map((module) => [module.key, module] as const))('%s', (_key, module) => {
  test('says what it and its fields are for', () => {
    expect(module.description).toMatch(/^[A-Z].{20,300}\.$/)
    for (const { fieldKey, description } of module.fields) expect(description, fieldKey).toMatch(/^[^\n]{5,200}[.?]$/)
    expect(module.fields.length).toBeLessThanOrEqual(215)
    const keys = module.fields.map((field) => field.fieldKey)
    expect(keys).toEqual(expect.arrayContaining([...module.subtitleFields]))
  })

  test.each(module.fields.map((field) => [field.fieldKey, field] as const))('%s has examples that fit', (_, field) => {
    expect(unfit(field, field.example)).toBeUndefined()
    if (field.default !== undefined) expect(unfit(field, field.default)).toBeUndefined()
    expect(field.dataType === 'json').toBe(field.schema !== undefined)
    if (field.schema) expect(undescribed(field.schema as Schema, field.fieldKey)).toEqual([])
  })

  test('derives from the examples values that fit its fields, and once more the same', () => {
    const made = created(module)
    for (const [fieldKey, value] of Object.entries(made)) {
      const field = module.fields.find((candidate) => candidate.fieldKey === fieldKey)
      expect(field, fieldKey).toBeDefined()
      if (value !== null && value !== undefined) expect(unfit(field!, value), fieldKey).toBeUndefined()
    }
    expect({ ...made, ...module.derive(made, made, later) }).toEqual(made)
  })

  test('holds with its required fields alone', () => {
    const bare = Object.fromEntries(
      module.fields.flatMap((field) => (field.required ? [[field.fieldKey, field.example]] : [])),
    )
    const named = ['contacts', 'leads'].includes(module.key) ? { lastName: 'Lovelace' } : {}
    const values = { ...defaultsOf(module), ...bare, ...named }
    expect({ ...values, ...module.derive(values, undefined, moment) }).toMatchObject(bare)
  })
})

describe.each(withStates.map((module) => [module.key, module] as const))('the states of %s', (_key, module) => {
  const { states, fields } = module
  const field = fields.find((candidate) => candidate.fieldKey === states.field)!
  const all = field.options!.map((option) => option.value)

  test('are the options of its field, all of them within reach, the first one first', () => {
    expect(field.dataType).toBe('select')
    expect(field.default).toBe(states.initial)
    const reached = new Set([states.initial])
    for (const state of reached) for (const next of states.transitions[state] ?? []) reached.add(next)
    expect([...reached].sort()).toEqual([...all].sort())
    const named = [
      ...Object.entries(states.transitions).flat(2),
      ...(states.createdIn ?? []),
      ...Object.values(states.times ?? {}).flatMap((time) => [...time.entering, ...(time.clearedIn ?? [])]),
      ...fields.flatMap((one) => one.lockedIn ?? []),
    ]
    expect(all).toEqual(expect.arrayContaining(named))
    for (const [from, to] of Object.entries(states.transitions)) expect(to).not.toContain(from)
  })

  test('have times that only the service sets', () => {
    for (const [fieldKey, { entering, clearedIn = [] }] of Object.entries(states.times ?? {})) {
      expect(fields.find((one) => one.fieldKey === fieldKey)).toMatchObject({ dataType: 'dateTime', readOnly: true })
      expect(entering.filter((state) => clearedIn.includes(state))).toEqual([])
    }
  })

  test(`are never left by a way that is not there (seed ${seed})`, { timeout: patienceMs }, () => {
    const walk = fc.array(fc.constantFrom(...all), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(walk, (targets) => {
        let record: ModuleValues | undefined
        for (const target of targets) {
          const allowed = record
            ? ways(states, String(record[states.field]))
            : [states.initial, ...(states.createdIn ?? [])]
          const outcome = attempt(module, record, target)
          const refused = outcome instanceof Failure
          if (refused) expect(outcome.code).toBe('state_transition_invalid')
          expect(refused).toBe(!allowed.includes(target))
          if (refused) continue
          record = outcome
          // Amounts may carry a record further, but not anywhere either.
          expect(ways(states, target)).toContain(record[states.field])
          expectTimes(states, record)
        }
      }),
      runs(60),
    )
  })

  const locked = fields.flatMap((one) => (one.lockedIn ?? []).map((state) => [one.fieldKey, state, one] as const))
  test.runIf(locked.length > 0).each(locked)('%s is final while it is %s', (fieldKey, state, one) => {
    const before = created(module, { [states.field]: state, ...needsOf(module.key, state) })
    const changed = { ...before, [fieldKey]: anotherValue(one) }
    expect(() => module.derive(changed, before, later)).toThrow(
      expect.objectContaining({ code: 'field_locked', details: [expect.objectContaining({ field: fieldKey })] }),
    )
  })
})

test('final lines can be sent again as they were written', () => {
  const invoices = modules.find((module) => module.key === 'invoices')!
  const open = created(invoices, { status: 'open' })
  const lines = invoices.fields.find((field) => field.fieldKey === 'lines')!.example
  expect(invoices.derive({ ...open, lines, total: null }, open, later)).toMatchObject({
    lines: open['lines'],
    total: '972.00',
  })
})

test('a refused transition names the field, and where the record could go', () => {
  const invoices = modules.find((module) => module.key === 'invoices')!
  const open = created(invoices, { status: 'open' })
  expect(() => invoices.derive({ ...open, status: 'draft' }, open, later)).toThrow(
    expect.objectContaining({
      code: 'state_transition_invalid',
      details: [
        {
          field: 'status',
          code: 'state_transition_invalid',
          message: 'From "open" it can go to "paid", "void", "uncollectible". It cannot go to "draft".',
        },
      ],
    }),
  )
})

/** A record with the example of every field that a body can hold, as it is after its creation. */
function created(module: Module, values: ModuleValues = {}): ModuleValues {
  const writable = module.fields.filter((field) => !field.readOnly)
  const examples = Object.fromEntries(writable.map((field) => [field.fieldKey, field.example]))
  const record = { ...examples, ...values }
  return { ...record, ...module.derive(record, undefined, moment) }
}

function defaultsOf(module: Module): ModuleValues {
  return Object.fromEntries(module.fields.map((field) => [field.fieldKey, field.default ?? null]))
}

function attempt(module: Module & { states: ModuleStates }, record: ModuleValues | undefined, target: string) {
  const values = { [module.states.field]: target, ...needsOf(module.key, target) }
  if (!record) return caught(() => created(module, values))
  const after = { ...record, ...values }
  return caught(() => ({ ...after, ...module.derive(after, record, later) }))
}

function caught(work: () => ModuleValues): ModuleValues | Failure {
  try {
    return work()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** What a state cannot do without. */
const needs: Readonly<Record<string, ModuleValues>> = {
  'payments partiallyRefunded': { amountRefunded: '100.00' },
  'inbox snoozed': { snoozedUntil: '2026-09-20T07:00:00.000Z' },
}

function needsOf(moduleKey: string, state: string): ModuleValues {
  return needs[`${moduleKey} ${state}`] ?? {}
}

function ways(states: ModuleStates, from: string): readonly string[] {
  return [from, ...(states.transitions[from] ?? [])]
}

function expectTimes(states: ModuleStates, record: ModuleValues): void {
  const state = String(record[states.field])
  for (const [fieldKey, { entering, clearedIn = [] }] of Object.entries(states.times ?? {})) {
    if (entering.includes(state)) expect(record[fieldKey], fieldKey).toEqual(expect.any(String))
    if (clearedIn.includes(state)) expect(record[fieldKey] ?? null, fieldKey).toBeNull()
  }
}

function anotherValue(field: ModuleField): unknown {
  if (field.fieldKey === 'currency') return 'USD'
  if (field.fieldKey === 'lines') return [{ description: 'Something else', unitPrice: '1' }]
  if (field.dataType === 'decimal') return field.fieldKey === 'amount' ? '5000.00' : '1.00'
  if (field.dataType === 'boolean') return field.example !== true
  return field.required ? `${String(field.example)} 2` : null
}

/** Why a value does not fit its field, or undefined. Reading it must not change it. */
function unfit(field: ModuleField, value: unknown): string | undefined {
  if (field.schema && !validatorOf(field.schema).Check(value)) return `${JSON.stringify(value)} does not fit the schema`
  const read = dataTypes[field.dataType].read(value, catalogued(field))
  const kept = typeof value === 'number' && typeof read === 'string' ? Number(read) : read
  return isDeepStrictEqual(kept, value) ? undefined : `${JSON.stringify(value)} is read as ${JSON.stringify(read)}`
}

function catalogued(field: ModuleField): Field {
  return {
    fieldId: field.fieldKey,
    fieldKey: field.fieldKey,
    label: field.label,
    dataType: field.dataType,
    column: field.fieldKey,
    required: field.required ?? false,
    readOnly: field.readOnly ?? false,
    unique: field.unique ?? false,
    indexed: field.indexed ?? false,
    indexState: 'ready',
    searchable: field.searchable ?? false,
    searchTag: null,
    options: field.options ?? null,
    validation: limitsOf(field),
    referenceObjectId: field.references ?? null,
  }
}

interface Schema {
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly type?: string
}

/** The properties of a schema that lack a description or an example that fits. */
function undescribed(schema: Schema, path: string): string[] {
  const told = schema.description === undefined ? (schema.anyOf?.[0] ?? schema) : schema
  const isTold = Boolean(told.description) && told.examples?.length === 1 && validatorOf(schema).Check(told.examples[0])
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => undescribed(one, `${path}.${name}`))
  const items = schema.items?.properties
    ? Object.entries(schema.items.properties).flatMap(([name, one]) => undescribed(one, `${path}[].${name}`))
    : []
  return [...(isTold ? [] : [path]), ...inner, ...items]
}
