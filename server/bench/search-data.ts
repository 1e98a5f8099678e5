import type pg from 'pg'
import { keyTag } from '../src/shared/records/search-document.ts'
import type { Tenant } from './tenant.ts'

/**
 * People and companies as an address book has them, the same every time: 130 first names and 960 family names, common ones
 * more often; 19,000 companies; numbers of six countries; every fourth with two addresses, every third with two numbers.
 */
export const firsts =
  'Maria Anna Thomas Michael David Peter Daniel Laura Julia Andreas Martin Sara Paul Eva José Lea Elena Alice Emma Jan Stefan Markus Sofia Mohamed Clara Lucas Nina Jean Oscar Mia Felix Marco Petra Erik Lars Hans Ana Carlos Ivan Karim Ada Alan Amir Anders Arun Astrid Ben Björn Carla Chen Chloé Deniz Dimitri Edgar Emil Fatima Fiona Florence Francesca Gareth Georg Grace Gül Hana Harriet Helga Hiro Ida Ines Ingrid Isabel Jana Joanna John Jürgen Kate Kenji Klaus Leila Leon Lina Linnéa Luís Magnus Maja Malik Margaret Mei Miguel Milan Nadia Nils Noah Noor Olga Omar Pablo Patrick Pia Priya Rachel Rafael Ravi Renée Robert Rosa Ruth Samir Sean Selma Simon Sven Takeshi Tara Theo Tiago Tuomas Ulrike Valérie Vera Viktor Wanda Wei William Xavier Yara Yusuf Zeynep Zoë'.split(
    ' ',
  )
const common =
  'Müller Smith Schmidt Johnson García Martin Nguyen Rossi Silva Kim Singh Wagner Becker Novák Kowalski Dubois Jones Brown Taylor Khan'.split(
    ' ',
  )
const heads =
  'Ander Berg Blom Brand Carl Dahl Eck Eng Fair Feld Fisch Gold Gran Grün Hamil Hart Hau Hof Holm Jans Kauf Kirk Klein Koch Lind Lund Mar Mei Mill Neu Nord Ober Peter Rich Ros Sand Schmid Schön Silber Stein Stern Strand Sund Thor Traut Val Wald'.split(
    ' ',
  )
const tails = 'mann sen son berg er stein feld ström gren quist hauser bauer ton ley ford wood worth ski ova ez'.split(
  ' ',
)
export const families = [...common, ...heads.flatMap((head) => tails.map((tail) => head + tail))]
const trades =
  'Foods Logistics Systems Partners Trading Software Foundry Textiles Consulting Energy Media Robotics Pharma Motors Optics Builders Analytics Marine Press Gardens'.split(
    ' ',
  )
const jobs = 'Buyer,Head of Sales,Engineer,Managing Director,Accountant,Designer,Lawyer,Physician,Teacher'.split(',')

/** Country code, what is dialled before a number at home, its area, how many digits follow and how they are written. */
const countries = [
  ['44', '0', '20', 8, '\\1 \\2'],
  ['1', '', '202', 7, '\\1-\\2'],
  ['49', '0', '30', 8, '\\1\\2'],
  ['33', '0', '1', 8, '\\1 \\2'],
  ['43', '0', '1', 7, '\\1 \\2'],
  ['81', '0', '3', 8, '\\1-\\2'],
] as const

/** A number between 0 and 1 for each row and purpose, without a pattern that an index would notice. */
const random = (purpose: number) =>
  `((hashint8extended(n + $10::bigint, ${purpose}) & 4294967295) / 4294967296.0::float8)`
const pick = (list: string, purpose: number) =>
  `(${list})[1 + floor(cardinality(${list}) * ${random(purpose)}::float8)::int]`
/** The first of a list more often than the last. */
const pickCommon = (list: string, purpose: number) =>
  `(${list})[1 + floor(cardinality(${list}) * power(${random(purpose)}, 1.4))::int]`
const folded = (text: string) => `translate(lower(${text} COLLATE "und-x-icu"), 'ς', 'σ')`
const letters = ['öüéëäáíóñşç', 'oueeaaionsc'] as const
const plain = (text: string) => `translate(${folded(text)}, '${letters[0]}', '${letters[1]}')`

export interface Population {
  readonly organizationId: string
  readonly count: number
  /** The same people for the same seed; far from those of others, or the end of one is the beginning of the next. */
  readonly seed: number
  /** Sixths: owned by either person, of the role at either location, and twice of the role at none. */
  readonly ownerIds: readonly [string, string]
  readonly roleId: string
  readonly locationIds: readonly [string, string]
  /** Takes part in every thousandth. */
  readonly participantId: string
}

/** Contacts with everything that the service would have written beside them, but for their history. */
export async function fillContacts(client: pg.Client, tenant: Tenant, population: Population): Promise<void> {
  const { organizationId, count, seed, ownerIds, roleId, locationIds, participantId } = population
  const { table, objectId } = tenant.contacts
  await client.query('BEGIN')
  // What foreign keys and triggers would check holds by what is written here; row by row it took longer than the rows.
  await client.query('SET LOCAL session_replication_role = replica')
  await client.query(peopleSql(count), [
    firsts,
    families,
    trades,
    jobs,
    ...[0, 1, 2, 4].map((part) => countries.map((country) => country[part as 0])),
    countries.map((country) => country[3]),
    seed,
  ])
  await client.query(
    `INSERT INTO ${table} (organization_id, record_id, owner_user_id, data_role_id, location_id, created_at,
       created_by_kind, created_by_id, updated_at, updated_by_kind, updated_by_id, revision, "f_contactType",
       "f_displayName", "x_displayName", "f_firstName", "x_firstName", "f_lastName", "x_lastName",
       "f_companyName", "x_companyName", "f_jobTitle", "x_jobTitle", f_emails, f_phones,
       "f_primaryEmail", "x_primaryEmail", "f_primaryPhone", "x_primaryPhone", "f_marketingConsent")
     SELECT $1, record_id, ${placement.owner}, ${placement.role}, ${placement.location}, at,
       'system', 'bench', at, 'system', 'bench', 1, CASE WHEN first IS NULL THEN 'company' ELSE 'person' END,
       name, ${folded('name')}, first, ${folded('first')}, family, ${folded('family')},
       company, ${folded('company')}, job, ${folded('job')},
       (SELECT jsonb_agg(jsonb_build_object('address', address, 'isPrimary', o = 1)) FROM unnest(emails) WITH ORDINALITY AS e (address, o)),
       (SELECT jsonb_agg(jsonb_build_object('number', numbers[o], 'e164', '+' || digits[o], 'isPrimary', o = 1)) FROM generate_subscripts(numbers, 1) AS o),
       emails[1], ${folded('emails[1]')}, '+' || digits[1], '+' || digits[1], 'unknown' FROM person`,
    [organizationId, ...ownerIds, roleId, ...locationIds],
  )
  await client.query(
    `INSERT INTO portico.record_directory (organization_id, record_id, object_id) SELECT $1, record_id, $2 FROM person`,
    [organizationId, objectId],
  )
  await client.query(
    `INSERT INTO portico.record_participant (organization_id, record_id, user_id)
     SELECT $1, record_id, $2 FROM person WHERE n % 1000 = 4`,
    [organizationId, participantId],
  )
  await client.query(documentsSql(tenant), [
    ...[organizationId, ...ownerIds, roleId, ...locationIds],
    ...[objectId, participantId],
    ...['firstName', 'lastName', 'emails', 'phones'].map(keyTag),
  ])
  await client.query('COMMIT')
}

const placement = {
  owner: 'CASE n % 6 WHEN 1 THEN $2::uuid WHEN 5 THEN $3::uuid END',
  role: 'CASE WHEN n % 6 IN (0, 2, 3, 4) THEN $4::uuid END',
  location: 'CASE n % 6 WHEN 2 THEN $5::uuid WHEN 3 THEN $6::uuid END',
}

function peopleSql(count: number): string {
  // None begins with 0 or 1, which few countries have.
  const number = (which: number) =>
    `(SELECT floor(power(10, ($9::int[])[country]) * (0.2 + 0.8 * ${random(which)}))::bigint::text AS line)`
  const international = (line: string) => `($5::text[])[country] || ($7::text[])[country] || ${line}`
  const written = (line: string) => `'+' || ($5::text[])[country] || ' ' || ($7::text[])[country] || ' '
    || regexp_replace(${line}, '^(.+)(....)$', ($8::text[])[country])`
  const national = (line: string) => `nullif(($6::text[])[country], '') || ($7::text[])[country] || ${line}`
  return `CREATE TEMP TABLE person ON COMMIT DROP AS
    SELECT n, record_id, at, company, job, CASE WHEN n % 10 <> 7 THEN first END AS first, CASE WHEN n % 10 <> 7 THEN family END AS family,
      CASE WHEN n % 10 = 7 THEN company ELSE first || ' ' || family END AS name,
      CASE WHEN n % 4 = 1 THEN ARRAY[mail || '@' || domain, mail || n % 90 || '@post.example'] ELSE ARRAY[mail || '@' || domain] END AS emails,
      CASE WHEN n % 3 = 1 THEN ARRAY[${written('l1')}, ${written('l2')}] ELSE ARRAY[${written('l1')}] END AS numbers,
      CASE WHEN n % 3 = 1 THEN ARRAY[${international('l1')}, ${international('l2')}] ELSE ARRAY[${international('l1')}] END AS digits,
      CASE WHEN n % 3 = 1 THEN ARRAY[${national('l1')}, ${national('l2')}] ELSE ARRAY[${national('l1')}] END AS nationals
    FROM (SELECT *, one.line AS l1, two.line AS l2,
        ${plain('first')} || '.' || ${plain('family')} AS mail, replace(${plain('company')}, ' ', '-') || '.example' AS domain
      FROM (SELECT n, uuidv7(make_interval(secs => n - ${count})) AS record_id,
          (now() - make_interval(secs => 3 * (${count} - n) + 10 * ${random(9)}))::timestamptz(3) AS at,
          ${pickCommon('$1::text[]', 1)} AS first, ${pickCommon('$2::text[]', 2)} AS family,
          ${pick('$2::text[]', 4)} || ' ' || ${pick('$3::text[]', 6)} AS company,
          CASE WHEN n % 3 > 0 THEN ${pick('$4::text[]', 5)} END AS job,
          1 + floor(cardinality($5::text[]) * power(${random(3)}, 1.4))::int AS country
        FROM generate_series(1, ${count}) AS n) AS made,
        LATERAL ${number(7)} AS one, LATERAL ${number(8)} AS two) AS said`
}

/** As shared/records/search-document.ts writes them; `requireSameDocuments` holds both together. */
function documentsSql({ contacts }: Tenant): string {
  const [name, company, email, phone] = ['displayName', 'companyName', 'primaryEmail', 'primaryPhone'].map(
    (key) => `E'\\x1f${contacts.searchTags[key]}'`,
  )
  const digitsOf = (tag: string, o: string) => `coalesce(${tag} || nationals[${o}], '')`
  return `INSERT INTO portico.search_document (organization_id, object_id, record_id, content, title,
      owner_user_id, data_role_id, location_id, participant_ids, updated_at, created_at)
    SELECT $1, $7, record_id, substr(${name} || ${plain('name')}
        || coalesce(E'\\x1f' || $9 || ${plain('first')} || E'\\x1f' || $10 || ${plain('family')}, '') || ${company} || ${plain('company')}
        || E'\\x1f' || $11 || array_to_string(emails, E'\\x1f' || $11)
        || (SELECT string_agg(p || numbers[o] || p || digits[o] || ${digitsOf('p', 'o')} || p || '+' || digits[o], '' ORDER BY o)
            FROM generate_subscripts(numbers, 1) AS o, (SELECT E'\\x1f' || $12 AS p) AS tag)
        || ${email} || emails[1] || ${phone} || '+' || digits[1] || ${phone} || digits[1] || ${digitsOf(phone!, '1')}, 2),
      ${plain('name')}, ${placement.owner}, ${placement.role}, ${placement.location},
      CASE WHEN n % 1000 = 4 THEN ARRAY[$8::uuid] ELSE '{}' END, at, at FROM person`
}
