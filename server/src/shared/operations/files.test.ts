import { zstdCompressSync } from 'node:zlib'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { appendToFile, chunkBytesMax, type FileOwner, readFile } from './files.ts'

let db: TestDatabase
let owner: FileOwner

beforeAll(async () => {
  db = await createTestDatabase()
  const { appId, organizations } = await createTenant(db.database, { organizations: { a: {} } })
  owner = { organizationId: organizations.a.organizationId, operationId: uuidv7(Date.now()) }
  const { organizationId, operationId } = owner
  await db.database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.operation (organization_id, operation_id, app_id, type, key_id, actor_kind, actor_id,
        scope, correlation_id, input, status, due_at, created_at)
      VALUES (${organizationId}, ${operationId}, ${appId}, 'records.import', 'key', 'system', 'test', 'records.write',
        ${uuidv7(Date.now())}, '{}', 'receiving', now(), now())`),
  )
})
afterAll(() => db?.drop())

async function read(file: 'upload' | 'result'): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of readFile(db.database, owner, file)) pieces.push(piece)
  return Buffer.concat(pieces)
}

test('what was written is read again, chunk by chunk', async () => {
  const bytes = Buffer.alloc(2 * chunkBytesMax + 1, 'portico')
  await db.database.inOrganization(owner.organizationId, (tx) => appendToFile(tx, owner, 'upload', bytes))
  expect((await read('upload')).equals(bytes)).toBe(true)
})

test('a chunk that holds more than one may is not unpacked', async () => {
  const content = zstdCompressSync(Buffer.alloc(chunkBytesMax + 1))
  await db.database.inOrganization(owner.organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.operation_chunk (organization_id, operation_id, file, number, size_bytes, content)
      VALUES (${owner.organizationId}, ${owner.operationId}, 'result', 0, 1, ${content})`),
  )
  await expect(read('result')).rejects.toThrow('Cannot create a Buffer larger than')
})
