import { parse as parseJson } from 'secure-json-parse'
import type { TSchema } from 'typebox'
import { fail } from '../../kernel/errors.ts'
import { isDeeperThan, jsonDepthMax } from '../../kernel/json-depth.ts'
import type { Field } from '../catalogue/field.ts'

/** Values of fields as cells of CSV, and back. What an export writes, an import reads as the same value. */

/** With the apostrophes that stand before such text already: one more is put there, and one is taken away. */
const formula = /^'*[=+\-@\t\r]/

const numeric: ReadonlySet<Field['dataType']> = new Set(['integer', 'float', 'decimal', 'autoNumber'])

/** Nothing is an empty cell; lists and structures are JSON. */
export function cellOf(value: unknown, dataType: Field['dataType'] | undefined, escapeFormulas: boolean): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'object') return JSON.stringify(value)
  const text = String(value)
  const isNumber = dataType !== undefined && numeric.has(dataType)
  return escapeFormulas && !isNumber && formula.test(text) ? `'${text}` : text
}

/** The cell without the apostrophe that an export, or a spreadsheet, has put before what looks like a formula. */
export function unescapedCell(cell: string): string {
  return cell.startsWith("'") && formula.test(cell) ? cell.slice(1) : cell
}

/**
 * The value that a client would send in JSON for the cell. What cannot be read as the type of the field stays text, which the
 * field then refuses by name.
 */
export function valueOfCell(cell: string, field: Field): unknown {
  switch (field.dataType) {
    case 'text':
    case 'longText':
      return unescapedCell(cell)
    case 'float':
      return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(cell) ? Number(cell) : cell
    case 'boolean':
      return booleans.get(cell.trim().toLowerCase()) ?? cell
    case 'multiSelect':
      return parsed(cell, field) ?? listOf(cell)
    case 'json': {
      const value = parsed(cell, field)
      if (value !== undefined) return value
      const name = soleNameOf(field.behaviour?.schema)
      return name === undefined ? cell : listOf(cell).map((entry) => ({ [name]: unescapedCell(entry) }))
    }
    default:
      return unescapedCell(cell).trim()
  }
}

const booleans = new Map([
  ['true', true],
  ['false', false],
])

/** Undefined where it is no JSON. Throws for what the body of a request could not hold either. */
function parsed(cell: string, { fieldKey: field }: Field): unknown {
  if (isDeeperThan(Buffer.from(cell), jsonDepthMax)) {
    throw fail('json_too_deep', { field, message: `More than ${jsonDepthMax} levels.` })
  }
  try {
    return parseJson(cell)
  } catch (error) {
    if (error instanceof Error && error.message.includes('prototype property')) {
      throw fail('invalid_json', { field, message: 'The names of prototypes cannot be used as names.' })
    }
    return undefined
  }
}

/** `a; b` */
function listOf(cell: string): string[] {
  return cell
    .split(';')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** Lists of structures that need one thing alone, as e-mail addresses do, may be written as that. */
function soleNameOf(schema: TSchema | undefined): string | undefined {
  const items = (schema as { readonly items?: { readonly required?: readonly string[] } } | undefined)?.items
  return items?.required?.length === 1 ? items.required[0] : undefined
}
