import pg from 'pg'

/**
 * How values of the database become values of JSON. Times arrive as text in UTC and leave as ISO 8601 with milliseconds;
 * making a Date in between costs ten times as much. Integers stay numbers while they are exact, else they become strings
 * (contract 0); decimals are always strings.
 */
const builtins = pg.types.builtins

function isoOfTimestamp(text: string): string {
  // 2026-11-20 08:26:11.1+00: the fraction comes without trailing zeros, or not at all.
  if (text.length === 26) return `${text.slice(0, 10)}T${text.slice(11, 23)}Z`
  const fraction = text.length > 22 ? text.slice(20, -3).padEnd(3, '0') : '000'
  return /^\d{4}-.*\+00$/.test(text) ? `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction}Z` : slowIso(text)
}

/** Years beyond 9999 or before our era. */
function slowIso(text: string): string {
  const date = new Date(text.replace(' ', 'T').replace(/\+00$/, 'Z'))
  return Number.isNaN(date.getTime()) ? text : date.toISOString()
}

function exactInteger(text: string): number | string {
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : text
}

const identity = (text: string) => text
const parsers = new Map<number, (text: string) => unknown>([
  [builtins.TIMESTAMPTZ, isoOfTimestamp],
  [builtins.INT8, exactInteger],
  [builtins.NUMERIC, identity],
  [builtins.DATE, identity],
])

export const valueTypes = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return parsers.get(oid) ?? pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig
