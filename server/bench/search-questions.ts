import pg from 'pg'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { families, firsts } from './search-data.ts'
import type { Tenant } from './tenant.ts'

/** Telephone numbers and addresses that are there, of the whole organisation. */
export interface Samples {
  readonly numbers: readonly string[]
  readonly addresses: readonly string[]
}

export type Question = string

/** What people search for, by kind: the n-th of each is another one. */
export const kinds = {
  'a family name': (n: number) => at(families, n * 37),
  'first and family name': (n: number) => `${at(firsts, n)} ${at(families, n * 11)}`,
  'part of a word': (n: number) => at(families, 20 + n * 17).slice(1, 6),
  'part of an address': (n: number, { addresses }: Samples) => at(addresses, n).slice(2, 16),
  'a telephone number': (n: number, { numbers }: Samples) => at(numbers, n).replace(/^(...)(..)(.*)$/, '$1 $2 $3'),
  'end of a number': (n: number, { numbers }: Samples) => at(numbers, n).slice(-6),
  'a misspelt name': (n: number) => at(families, 20 + n * 37).replace(/^(...)./, '$1x'),
  'a first name': (n: number) => at(firsts, n * 3),
  'two letters': (n: number) => ['er', 'an', 'st', 'zo'][n % 4]!,
} satisfies Record<string, (n: number, samples: Samples) => Question>

export type Kind = keyof typeof kinds

const at = <T>(list: readonly T[], n: number) => list[n % list.length]!

export async function takeSamples(
  connection: ConnectionSettings,
  { contacts, organization }: Tenant,
): Promise<Samples> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query<{ number: string; address: string }>(
      `SELECT "f_primaryPhone" AS number, "f_primaryEmail" AS address FROM ${contacts.table}
       WHERE organization_id = $1 ORDER BY md5(record_id::text) LIMIT 100`,
      [organization.organizationId],
    )
    return { numbers: rows.map(({ number }) => number), addresses: rows.map(({ address }) => address) }
  } finally {
    await client.end()
  }
}
