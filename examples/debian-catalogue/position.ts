import { randomUUID } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'

/**
 * How far a load has come, in a file, so that one that was killed goes on instead of beginning again. The file may be a
 * few batches behind: those are sent once more under the same Idempotency-Key, and the service answers as it did before
 * without doing it again.
 */
export interface Position {
  /** Part of every Idempotency-Key of this load. */
  readonly loadId: string
  readonly resumed: boolean
  isDone(batch: number): boolean
  /** Notes that the service has acknowledged a batch. */
  done(batch: number): Promise<void>
}

interface Kept {
  readonly plan: string
  readonly loadId: string
  /** Batches below this number are done, … */
  readonly below: number
  /** … and these above it. */
  readonly also: readonly number[]
}

/** `plan` says what is loaded where, in which batches: with another plan the load begins again. */
export async function openPosition(path: string, plan: string): Promise<Position> {
  const kept = await readKept(path)
  const resumed = kept?.plan === plan
  const loadId = resumed ? kept.loadId : randomUUID()
  let below = resumed ? kept.below : 0
  const also = new Set(resumed ? kept.also : [])
  let writing: Promise<void> | undefined
  let stale = false

  async function write(): Promise<void> {
    do {
      stale = false
      const content: Kept = { plan, loadId, below, also: [...also] }
      await writeFile(`${path}.new`, JSON.stringify(content), { mode: 0o600 })
      await rename(`${path}.new`, path)
    } while (stale)
  }

  const save = () => {
    stale = true
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }

  // Before the first batch: the keys must outlive the process that sends them.
  if (!resumed) await save()
  return {
    loadId,
    resumed,
    isDone: (batch) => batch < below || also.has(batch),
    done(batch) {
      also.add(batch)
      while (also.delete(below)) below++
      return save()
    },
  }
}

async function readKept(path: string): Promise<Kept | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    // A file that is not there, or not ours: the load begins again.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
