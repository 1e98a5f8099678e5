import type pg from 'pg'
import type { Tenant } from './tenant.ts'

/** Names as people have them, made of parts: 80 first names, 900 family names, 18,000 companies. The same every time. */
const firsts =
  'Ada Alan Alice Amir Ana Anders Anna Arun Astrid Ben Björn Carla Carlos Chen Clara Daniel David Deniz Edgar Elena Emil Emma Erik Eva Fatima Felix Fiona Francesca Gareth Grace Hana Hans Harriet Hiro Ida Ines Ivan Jana Jean Joanna John José Julia Karim Kate Kenji Lars Laura Lea Leon Lina Lucas Maja Marco Maria Markus Mei Mia Mohamed Nadia Nils Nina Noah Olga Oscar Paul Petra Priya Rachel Rafael Ravi Rosa Ruth Samir Sara Sofia Stefan Tara Theo Zoë'.split(
    ' ',
  )
const heads =
  'Ander Berg Blom Brand Carl Dahl Eck Eng Fair Feld Fisch Gold Gran Grün Hamil Hart Hau Hof Holm Jans Kauf Kirk Klein Koch Lind Lund Mar Mei Mill Neu Nord Ober Peter Rich Ros Sand Schmid Schön Silber Stein Stern Strand Sund Thor Traut'.split(
    ' ',
  )
const tails = 'mann sen son berg er stein feld ström gren quist hauser bauer ton ley ford wood worth ski ova ez'.split(
  ' ',
)
const trades =
  'Foods Logistics Systems Partners Trading Software Foundry Textiles Consulting Energy Media Robotics Pharma Motors Optics Builders Analytics Marine Press Gardens'.split(
    ' ',
  )

/** A number between 0 and 2^32 for each row and purpose, without a pattern that an index would notice. */
const random = (purpose: number) => `(hashint8extended(n::bigint, ${purpose}) & 4294967295)`
const pick = (list: string, purpose: number) => `(${list})[1 + ${random(purpose)} % array_length(${list}, 1)]`

export interface Population {
  readonly organizationId: string
  readonly count: number
  /** Who owns, which role, which locations; by sixths as in records.ts, and every thousandth has the participant. */
  readonly ownerIds: readonly [string, string]
  readonly roleIds: readonly [string, string]
  readonly locationIds: readonly [string, string]
  readonly participantId: string
}

/** Companies with names and telephone numbers of people, with what search needs of them; of a neighbour only that. */
export async function fillCompanies(client: pg.Client, tenant: Tenant, population: Population, rows: boolean) {
  const { organizationId, count, ownerIds, roleIds, locationIds, participantId } = population
  await client.query('BEGIN')
  // Foreign keys hold by what is written here; checking them row by row took longer than writing the rows.
  await client.query('SET LOCAL session_replication_role = replica')
  await client.query(
    `CREATE TEMP TABLE person ON COMMIT DROP AS
     SELECT *, translate(lower(name), 'öüéë', 'ouee') AS title, replace(lower(company), ' ', '') || n || '.example' AS domain,
       CASE n % 6 WHEN 1 THEN $5::uuid WHEN 5 THEN $6::uuid END AS owner_id,
       CASE n % 6 WHEN 2 THEN $7::uuid WHEN 3 THEN $7::uuid WHEN 4 THEN $8::uuid WHEN 0 THEN $8::uuid END AS role_id,
       CASE n % 6 WHEN 2 THEN $9::uuid WHEN 3 THEN $10::uuid END AS location_id,
       CASE WHEN n % 1000 = 4 THEN ARRAY[$11::uuid] ELSE '{}' END AS participants,
       (now() - make_interval(secs => ${random(9)} % 10000000))::timestamptz(3) AS at
     FROM (SELECT n, uuidv7(make_interval(secs => n - ${count})) AS record_id,
         ${pick('$1::text[]', 1)} || ' ' || ${pick('$2::text[]', 2)} || ${pick('$3::text[]', 3)} AS name,
         ${pick('$2::text[]', 4)} || ${pick('$3::text[]', 5)} || ' ' || ${pick('$4::text[]', 6)} AS company,
         lpad((${random(7)} % 100000000)::text, 8, '0') AS phone
       FROM generate_series(1, ${count}) AS n) AS made`,
    [firsts, heads, tails, trades, ...ownerIds, ...roleIds, ...locationIds, participantId],
  )
  if (rows) {
    await client.query(
      `INSERT INTO ${tenant.company.table} (organization_id, record_id, owner_user_id, data_role_id, location_id, created_at,
         created_by_kind, created_by_id, updated_at, updated_by_kind, updated_by_id, revision, f_name, x_name, f_domain, x_domain)
       SELECT $1, record_id, owner_id, role_id, location_id, at, 'system', 'bench', at, 'system', 'bench', 1,
         name, lower(name), domain, domain FROM person`,
      [organizationId],
    )
    for (const [table, columns, source] of [
      ['record_directory', 'record_id, object_id', 'SELECT $1::uuid, record_id, $2::uuid FROM person'],
      [
        'record_participant',
        'record_id, user_id',
        'SELECT $1::uuid, record_id, unnest(participants) FROM person WHERE $2::uuid IS NOT NULL',
      ],
    ]) {
      await client.query(`INSERT INTO portico.${table} (organization_id, ${columns}) ${source}`, [
        organizationId,
        tenant.company.objectId,
      ])
    }
  }
  await client.query(
    `INSERT INTO portico.search_document (organization_id, object_id, record_id, content, title, owner_user_id, data_role_id,
       location_id, participant_ids, updated_at)
     SELECT $1, $2, record_id, $3 || title || E'\\x1f' || $4 || domain || E'\\x1f' || $4 || '+4420' || phone
         || E'\\x1f' || $4 || '4420' || phone || E'\\x1f' || $4 || '020' || phone,
       title, owner_id, role_id, location_id, participants, at FROM person`,
    [organizationId, tenant.company.objectId, '\ue000', '\ue001'],
  )
  await client.query('COMMIT')
}

/** What people search for, by kind: the n-th of each is another one. */
export const questions: Readonly<Record<string, (n: number) => string>> = {
  'a family name': (n) => `${heads[(n * 7) % heads.length]}${tails[(n * 3) % tails.length]}`,
  'first and family name': (n) =>
    `${firsts[n % firsts.length]} ${heads[(n * 11) % heads.length]}${tails[n % tails.length]}`,
  'part of a word': (n) => `${heads[(n * 5) % heads.length]!.slice(1)}${tails[(n * 7) % tails.length]!.slice(0, 3)}`,
  'a telephone number': (n) => `+44 20 ${1000 + ((n * 7919) % 9000)} ${1000 + ((n * 104_729) % 9000)}`,
  'end of a number': (n) => String(100_000 + ((n * 7_919_123) % 900_000)),
  'a misspelt name': (n) => `${heads[(n * 7) % heads.length]!.slice(0, -1)}x${tails[(n * 3) % tails.length]}`,
  'a first name': (n) => firsts[n % firsts.length]!,
  'two letters': (n) => ['er', 'an', 'st', 'zo'][n % 4]!,
}
