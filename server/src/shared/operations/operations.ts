import { createHash } from 'node:crypto'
import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { BaseContext, Reply } from '../../kernel/operation.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import { appendToFile, chunkBytesMax, readFile } from './files.ts'
import type { OperationFile } from './kind.ts'
import { insertOperation, loadOf, queueReceived, removeReceived } from './store.ts'

/** What begins long-running work, and hands out what it wrote. */
export interface Operations {
  /** Begins work in the transaction of the request. Answer with what it returns. */
  begin(context: Occasion, work: BegunWork): Promise<Reply>
  /** Receives the file of work that is to begin; nobody knows of it before `beginReceived`. */
  receive(context: Occasion, work: Omit<BegunWork, 'input'>, bytes: AsyncIterable<Uint8Array>): Promise<ReceivedFile>
  /** Begins work whose file was received, in the transaction of the request. */
  beginReceived(context: Occasion, file: ReceivedFile, input: unknown): Promise<Reply>
  /** Removes a file that no work needs: the request was a repetition. */
  discard(context: Pick<Occasion, 'caller'>, file: ReceivedFile): Promise<void>
  /** The bytes of a file. Whoever asks must have found the operation as the caller before. */
  read(context: Pick<Occasion, 'caller'>, operationId: string, file: OperationFile): AsyncIterable<Uint8Array>
}

/** Where it happens; the context of a handler is one. */
export type Occasion = Pick<BaseContext, 'caller' | 'tx' | 'now' | 'correlationId' | 'afterCommit'>

export interface BegunWork {
  readonly type: string
  /** What the credential needs to begin it. */
  readonly scope: string
  readonly input: unknown
}

export interface ReceivedFile {
  readonly operationId: string
  readonly sizeBytes: number
  /** SHA-256 in hex. */
  readonly sha256: string
}

/** Of one organisation: operations that are not over, and bytes of all its files before compression. */
export const activeMax = 100
export const storedBytesMax = 20 * 1024 * 1024 * 1024

export function createOperations(parts: { readonly database: Database; readonly wake: () => void }): Operations {
  const { database, wake } = parts

  async function requireRoom(tx: Tx, organizationId: string): Promise<void> {
    const { active, storedBytes } = await loadOf(tx, organizationId)
    if (active >= activeMax || storedBytes >= storedBytesMax) {
      throw fail('operation_limit_reached', { retryAfterSeconds: 30 })
    }
  }

  function accepted({ caller, correlationId, afterCommit }: Occasion, operationId: string): Reply {
    afterCommit(wake)
    const statusUrl = `/v1/apps/${caller.appId}/operations/${operationId}`
    return {
      status: 202,
      body: { operationId, status: 'queued', statusUrl, correlationId },
      headers: { location: statusUrl, 'retry-after': '1' },
    }
  }

  return {
    async begin(context, work) {
      const { tx, caller, now, correlationId } = context
      const operationId = uuidv7(now)
      await requireRoom(tx, caller.organizationId)
      await insertOperation(tx, caller, { operationId, ...work, correlationId, now }, 'queued')
      return accepted(context, operationId)
    },

    async receive({ caller, now, correlationId }, work, bytes) {
      const { organizationId } = caller
      const operationId = uuidv7(now)
      await database.inOrganization(organizationId, async (tx) => {
        await requireRoom(tx, organizationId)
        await insertOperation(tx, caller, { operationId, ...work, input: null, correlationId, now }, 'receiving')
      })
      const owner = { organizationId, operationId }
      const digest = createHash('sha256')
      let sizeBytes = 0
      try {
        for await (const chunk of inChunks(bytes)) {
          digest.update(chunk)
          sizeBytes += chunk.length
          await database.inOrganization(organizationId, (tx) => appendToFile(tx, owner, 'upload', chunk))
        }
      } catch (error) {
        await database.inOrganization(organizationId, (tx) => removeReceived(tx, organizationId, operationId))
        throw error
      }
      return { operationId, sizeBytes, sha256: digest.digest('hex') }
    },

    async beginReceived(context, { operationId, sizeBytes }, input) {
      const { tx, caller, now } = context
      const queued = await queueReceived(tx, caller, operationId, { input, storedBytes: sizeBytes, now })
      if (!queued) throw new Error('A file was removed while its operation began.')
      return accepted(context, operationId)
    },

    async discard({ caller }, { operationId }) {
      const { organizationId } = caller
      await database.inOrganization(organizationId, (tx) => removeReceived(tx, organizationId, operationId))
    },

    read: ({ caller }, operationId, file) =>
      readFile(database, { organizationId: caller.organizationId, operationId }, file),
  }
}

/** The same bytes in pieces of 1 MiB, the last one shorter. */
async function* inChunks(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let held: Uint8Array[] = []
  let size = 0
  for await (const piece of bytes) {
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + chunkBytesMax - size)
      held.push(part)
      size += part.length
      at += part.length
      if (size < chunkBytesMax) continue
      yield Buffer.concat(held)
      held = []
      size = 0
    }
  }
  if (size > 0) yield Buffer.concat(held)
}
