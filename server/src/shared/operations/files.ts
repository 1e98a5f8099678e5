import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import sql, { empty } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import type { OperationFile } from './kind.ts'

/**
 * Files of operations, in chunks beside the operation: they go with it, need nothing else to run, and every process reads them.
 * One chunk is in memory at a time, whatever the size of the file.
 */
export const chunkBytesMax = 1024 * 1024

export interface FileOwner {
  readonly organizationId: string
  readonly operationId: string
}

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)
// 1 MiB of CSV: 4 ms, and a fourth of the size. Higher levels take longer than the rows take to be read.
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** Puts bytes at the end of a file, as one chunk for each MiB. `operation` must be the only one to write it. */
export async function appendToFile(
  tx: Tx,
  { organizationId, operationId }: FileOwner,
  file: OperationFile,
  bytes: Uint8Array,
): Promise<void> {
  for (let at = 0; at < bytes.length; at += chunkBytesMax) {
    const piece = bytes.subarray(at, at + chunkBytesMax)
    const content = await compress(piece, compression)
    await tx.rows(sql`
      INSERT INTO portico.operation_chunk (organization_id, operation_id, file, number, size_bytes, content)
      SELECT ${organizationId}, ${operationId}, ${file}, coalesce(max(number) + 1, 0), ${piece.length}, ${content}
      FROM portico.operation_chunk
      WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND file = ${file}`)
  }
}

/** What a file holds, in bytes; undefined where there is none. */
export async function sizeOfFile(
  tx: Tx,
  { organizationId, operationId }: FileOwner,
  file: OperationFile,
): Promise<number | undefined> {
  const [row] = await tx.rows<{ sizeBytes: number | null }>(sql`
    SELECT sum(size_bytes)::bigint AS "sizeBytes" FROM portico.operation_chunk
    WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND file = ${file}`)
  return row!.sizeBytes ?? undefined
}

/**
 * A file, chunk by chunk, each in a transaction of its own: none is open while whoever reads is slow. It ends early where the
 * file is removed meanwhile, so whoever promised a length finds out.
 */
export async function* readFile(
  database: Pick<Database, 'inOrganization'>,
  { organizationId, operationId }: FileOwner,
  file: OperationFile,
): AsyncGenerator<Buffer> {
  for (let number = 0; ; number++) {
    const [chunk] = await database.inOrganization(organizationId, (tx) =>
      tx.rows<{ content: Buffer }>(sql`
        SELECT content FROM portico.operation_chunk
        WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND file = ${file}
          AND number = ${number}`),
    )
    if (!chunk) return
    // What a row of a tenant says must not take more memory than a chunk may have.
    yield await decompress(chunk.content, { maxOutputLength: chunkBytesMax })
  }
}

/** Removes at most `limit` chunks of an operation, those of one file where it is named. Returns how many that were. */
export async function removeChunks(
  tx: Tx,
  { organizationId, operationId }: FileOwner,
  limit: number,
  file?: OperationFile,
): Promise<number> {
  const rows = await tx.rows(sql`
    DELETE FROM portico.operation_chunk c USING (
      SELECT file, number FROM portico.operation_chunk
      WHERE organization_id = ${organizationId} AND operation_id = ${operationId}
        ${file === undefined ? empty : sql`AND file = ${file}`}
      LIMIT ${limit}) AS gone
    WHERE c.organization_id = ${organizationId} AND c.operation_id = ${operationId}
      AND c.file = gone.file AND c.number = gone.number
    RETURNING c.number`)
  return rows.length
}
