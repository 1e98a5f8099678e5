import sql from 'sql-template-tag'
import type { Clock } from '../../kernel/clock.ts'
import type { Outcome } from '../../kernel/exchange.ts'
import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'

/**
 * When credentials and sessions were used last. Collected in memory and written every few seconds for all of them at once:
 * a row with each request would make every read a write.
 */
export interface LastUse {
  /** Notes the credential of a request, where it held. Never waits and never throws. */
  note(outcome: Pick<Outcome, 'caller' | 'status'>): void
  /** Writes what was collected. */
  flush(): Promise<void>
  /** Writes what was collected, as far as the database takes it within three seconds. */
  close(): Promise<void>
}

const flushEveryMs = 3_000
const closeWithinMs = 3_000
/** About 1 MB. Beyond it further credentials are not noted until what was collected is written. */
const keysMax = 10_000

export function createLastUse({
  database,
  clock,
  log,
}: {
  readonly database: Database
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
}): LastUse {
  let uses = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  let failing = false
  let closed = false

  function schedule(): void {
    if (!closed) timer ??= setTimeout(() => void flush(), flushEveryMs).unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing ??= write().finally(() => {
      writing = undefined
      if (uses.size > 0) schedule()
    })
    return writing
  }

  async function write(): Promise<void> {
    if (uses.size === 0) return
    const taken = uses
    uses = new Map()
    try {
      await noteUses(database, taken)
      failing = false
    } catch (error) {
      // What came meanwhile is newer. Said once, not at every attempt.
      for (const [keyId, at] of taken) if (!uses.has(keyId) && uses.size < keysMax) uses.set(keyId, at)
      if (!failing) log.warn({ err: error }, 'The last use of credentials cannot be written for now.')
      failing = true
    }
  }

  return {
    note({ caller, status }) {
      // 401 with a caller: it was remembered, and has been revoked since.
      if (closed || caller === undefined || caller.credentialKind === 'none' || status === 401) return
      if (uses.size >= keysMax && !uses.has(caller.keyId)) return
      uses.set(caller.keyId, clock.now())
      schedule()
    },
    flush,
    async close() {
      closed = true
      const { promise: timeIsUp, resolve } = Promise.withResolvers<void>()
      const deadline = setTimeout(resolve, closeWithinMs)
      // Twice: a write that is under way leaves out what came since it began.
      await Promise.race([flush().then(flush), timeIsUp])
      clearTimeout(deadline)
    },
  }
}

/** In the order of the keys, so that processes that write at the same time wait for each other and do not meet crosswise. */
async function noteUses(database: Database, uses: ReadonlyMap<string, number>): Promise<void> {
  const rows = [...uses].map(([keyId, at]) => ({ key_id: keyId, used_at: new Date(at).toISOString() }))
  rows.sort((a, b) => (a.key_id < b.key_id ? -1 : 1))
  await database.as('portico_system', (tx) => tx.rows(sql`SELECT portico.note_uses(${JSON.stringify(rows)}::jsonb)`))
}
