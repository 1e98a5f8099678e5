import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { type ConnectionSettings, DatabaseServerError, type ReportProgress } from '../../ports/database/port.ts'

const migrationsFolder = new URL('../../../migrations/', import.meta.url)

/** Any constant will do, as long as every version of the service takes the same lock. */
const migrationLock = 7_032_026_1120

interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
}

/**
 * Brings the database to the schema of this code: roles, then each migration that is missing, in order, each in one
 * transaction, under an advisory lock so that processes that start together do not race. Forward only: a database newer
 * than the code, or one whose past was edited, is refused.
 */
export async function migrate(connection: ConnectionSettings, report: ReportProgress = () => {}): Promise<void> {
  const client = new pg.Client({ ...connection, application_name: 'portico migrate' })
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [migrationLock])
    await prepareRoles(client).catch(explainMissingRight)
    await client.query('SET ROLE portico_owner')
    const applied = await readApplied(client)
    const known = await readMigrations()
    refuseUnknown(applied, known)
    const missing = known.filter((migration) => !applied.has(migration.version))
    if (missing.length > 0) report(applied.size === 0 ? 'Creating the schema …' : 'Updating the schema …')
    for (const migration of missing) await apply(client, migration)
    await client.query(`SELECT portico.maintain_partitions((now() AT TIME ZONE 'UTC')::date)`)
  } finally {
    await client.end()
  }
}

/** Making roles takes a right that the owner of a database does not have by itself. */
function explainMissingRight(error: Error & { code?: string }): never {
  if (error.code !== '42501') throw error
  throw new DatabaseServerError(
    `The database user lacks a right (${error.message}). It must own the database and be allowed to create roles: ` +
      'ALTER ROLE <user> CREATEROLE.',
  )
}

/**
 * portico_owner owns the schema and migrates; portico_app does everything for a caller, under row-level security;
 * portico_system writes across organisations what the service itself records. The login role may become each of them.
 */
async function prepareRoles(client: pg.Client): Promise<void> {
  await client.query(`
    DO $$
    DECLARE
      role text;
    BEGIN
      FOREACH role IN ARRAY ARRAY['portico_owner', 'portico_app', 'portico_system'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
          BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', role);
          EXCEPTION WHEN duplicate_object OR unique_violation THEN
            -- Another database of the same server is being prepared at this moment.
            NULL;
          END;
        END IF;
        IF NOT pg_has_role(current_user, role, 'MEMBER') THEN
          EXECUTE format('GRANT %I TO CURRENT_USER', role);
        END IF;
      END LOOP;
      EXECUTE format('GRANT CREATE ON DATABASE %I TO portico_owner', current_database());
    END $$`)
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_trgm')
  await client.query('CREATE EXTENSION IF NOT EXISTS btree_gin')
  await client.query('CREATE SCHEMA IF NOT EXISTS portico AUTHORIZATION portico_owner')
  await client.query('GRANT USAGE ON SCHEMA portico TO portico_app, portico_system')
  await client.query(`CREATE TABLE IF NOT EXISTS portico.migration (
    version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
  await client.query('ALTER TABLE portico.migration OWNER TO portico_owner')
}

async function readApplied(client: pg.Client): Promise<Map<number, string>> {
  const { rows } = await client.query<{ version: number; checksum: string }>(
    'SELECT version, checksum FROM portico.migration',
  )
  return new Map(rows.map((row) => [row.version, row.checksum]))
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(migrationsFolder)).filter((name) => /^\d{4}_\w+\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      // Line ends differ between checkouts; the checksum must not.
      const text = (await readFile(new URL(name, migrationsFolder), 'utf8')).replaceAll('\r\n', '\n')
      return {
        version: Number(name.slice(0, 4)),
        name,
        text,
        checksum: createHash('sha256').update(text).digest('hex'),
      }
    }),
  )
}

function refuseUnknown(applied: ReadonlyMap<number, string>, known: readonly Migration[]): void {
  const newest = known.at(-1)?.version ?? 0
  for (const [version, checksum] of applied) {
    if (version > newest) {
      throw new DatabaseServerError(
        `The database is at schema version ${version}; this code knows ${newest}. Start the newer release.`,
      )
    }
    const migration = known.find((candidate) => candidate.version === version)
    if (migration?.checksum !== checksum) {
      throw new DatabaseServerError(
        `Migration ${version} of this code differs from the one that the database was made with. Use a released version.`,
      )
    }
  }
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('BEGIN')
  try {
    await client.query(migration.text)
    await client.query('INSERT INTO portico.migration (version, name, checksum) VALUES ($1, $2, $3)', [
      migration.version,
      migration.name,
      migration.checksum,
    ])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw new Error(`Migration ${migration.name} failed.`, { cause: error })
  }
}
