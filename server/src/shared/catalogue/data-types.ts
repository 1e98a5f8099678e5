import type { Field } from './field.ts'
import * as read from './values.ts'

/**
 * The data types of fields (contract 3), each told once: the column that stores it, the operators that filter it, how a
 * client's value is read, how it looks in JSON Schema. Everything else about a type derives from this table.
 */
export const operators = [
  'eq',
  'ne',
  'in',
  'notIn',
  'lt',
  'lte',
  'gt',
  'gte',
  'between',
  'isNull',
  'isNotNull',
  'contains',
  'startsWith',
  'endsWith',
  'containsAny',
  'containsAll',
] as const
export type Operator = (typeof operators)[number]

/**
 * The column beside the value's own that comparisons use, where the value's own will not do:
 * - `folded`: text in lower case, because text compares without regard to case, and because lower() is not leakproof and
 *   so could not drive an index behind row-level security;
 * - `float`: a float8 beside an exact numeric, whose comparison is not leakproof either; rechecked against the exact one.
 */
export type Shadow = 'folded' | 'float'

export interface DataType {
  readonly column: string
  readonly shadow?: Shadow
  readonly operators: readonly Operator[]
  readonly sortable: boolean
  /** May its values be found by `search`? */
  readonly searchable: boolean
  readonly readOnly?: true
  read(value: unknown, field: Field): unknown
  /** JSON Schema of a value, without null. */
  schema(field: Field): Record<string, unknown>
}

const presence = ['isNull', 'isNotNull'] as const
const equality = ['eq', 'ne', 'in', 'notIn', ...presence] as const
const order = ['eq', 'ne', 'in', 'notIn', 'lt', 'lte', 'gt', 'gte', 'between', ...presence] as const
const text = [...order, 'contains', 'startsWith', 'endsWith'] as const

/** A B-tree entry holds 2,704 bytes; 255 characters of four bytes and two ids fit with room for the folding. */
export const indexedTextMax = 255
const textMax = 2000
const longTextMax = 100_000

function shortText(readValue: DataType['read'], schema: DataType['schema']): DataType {
  return {
    column: 'text COLLATE "C"',
    shadow: 'folded',
    operators: text,
    sortable: true,
    searchable: true,
    read: readValue,
    schema,
  }
}

function textLimit(field: Field): number {
  return field.indexed || field.unique ? indexedTextMax : textMax
}

export const dataTypes = {
  text: shortText(
    (value, field) => read.readText(value, field, textLimit(field)),
    (field) => ({
      type: 'string',
      maxLength: Math.min(field.validation.maxLength ?? textMax, textLimit(field)),
      examples: ['Northwind Traders'],
    }),
  ),
  longText: {
    column: 'text COLLATE "C"',
    operators: ['eq', 'ne', ...presence, 'contains', 'startsWith', 'endsWith'],
    sortable: false,
    searchable: true,
    read: (value, field) => read.readText(value, field, longTextMax),
    schema: (field) => ({
      type: 'string',
      maxLength: field.validation.maxLength ?? longTextMax,
      examples: ['Called on Monday; wants an offer by Friday.'],
    }),
  },
  integer: {
    column: 'bigint',
    operators: order,
    sortable: true,
    searchable: false,
    read: read.readInteger,
    schema: () => ({ type: ['integer', 'string'], format: 'int64', pattern: '^-?\\d{1,19}$', examples: [42] }),
  },
  float: {
    column: 'double precision',
    operators: order,
    sortable: true,
    searchable: false,
    read: read.readFloat,
    schema: () => ({ type: 'number', examples: [0.75] }),
  },
  decimal: {
    column: 'numeric',
    shadow: 'float',
    operators: order,
    sortable: true,
    searchable: false,
    read: read.readDecimal,
    schema: () => ({
      type: 'string',
      format: 'decimal',
      pattern: '^-?\\d{1,38}(\\.\\d{1,18})?$',
      examples: ['1250.00'],
    }),
  },
  boolean: {
    column: 'boolean',
    operators: ['eq', 'ne', ...presence],
    sortable: true,
    searchable: false,
    read: read.readBoolean,
    schema: () => ({ type: 'boolean', examples: [true] }),
  },
  date: {
    column: 'date',
    operators: order,
    sortable: true,
    searchable: false,
    read: read.readDate,
    schema: () => ({ type: 'string', format: 'date', examples: ['2026-09-14'] }),
  },
  dateTime: {
    column: 'timestamptz(3)',
    operators: order,
    sortable: true,
    searchable: false,
    read: read.readDateTime,
    schema: () => ({ type: 'string', format: 'date-time', examples: ['2026-09-14T09:30:00.000Z'] }),
  },
  select: {
    column: 'text COLLATE "C"',
    operators: equality,
    sortable: true,
    searchable: true,
    read: read.readOption,
    schema: (field) => ({ type: 'string', enum: optionValues(field), examples: optionValues(field).slice(0, 1) }),
  },
  multiSelect: {
    column: 'text[] COLLATE "C"',
    operators: ['containsAny', 'containsAll', ...presence],
    sortable: false,
    searchable: false,
    read: read.readOptions,
    schema: (field) => ({
      type: 'array',
      uniqueItems: true,
      items: { type: 'string', enum: optionValues(field) },
      examples: [optionValues(field).slice(0, 1)],
    }),
  },
  email: shortText(read.readEmail, () => ({
    type: 'string',
    format: 'email',
    maxLength: 254,
    examples: ['ada@example.com'],
  })),
  phone: shortText(read.readPhone, () => ({ type: 'string', maxLength: 40, examples: ['+44 20 7946 0958'] })),
  url: shortText(read.readUrl, () => ({
    type: 'string',
    format: 'uri',
    maxLength: 2048,
    examples: ['https://example.com/'],
  })),
  json: {
    column: 'jsonb',
    operators: presence,
    sortable: false,
    searchable: false,
    read: read.readJson,
    schema: () => ({ examples: [{ colour: 'green' }] }),
  },
  user: {
    column: 'uuid',
    operators: equality,
    sortable: false,
    searchable: false,
    read: read.readUuid,
    schema: () => ({ type: 'string', format: 'uuid', examples: ['0199a1b2-0000-7000-8000-0000000000dd'] }),
  },
  reference: {
    column: 'uuid',
    operators: equality,
    sortable: false,
    searchable: false,
    read: read.readUuid,
    schema: () => ({ type: 'string', format: 'uuid', examples: ['0199a1b2-0000-7000-8000-0000000000ab'] }),
  },
  autoNumber: {
    column: 'bigint',
    operators: order,
    sortable: true,
    searchable: false,
    readOnly: true,
    read: read.readInteger,
    schema: () => ({ type: 'integer', minimum: 1, examples: [1001] }),
  },
} as const satisfies Record<string, DataType>

export type DataTypeKey = keyof typeof dataTypes

export function dataTypeOf(field: Field): DataType {
  return dataTypes[field.dataType]
}

/** Does the service set it, whatever a client sends? */
export function isReadOnly(field: Field): boolean {
  return field.readOnly || dataTypeOf(field).readOnly === true
}

function optionValues(field: Field): string[] {
  return (field.options ?? []).map((option) => option.value)
}
