import sql from 'sql-template-tag'
import type { Statement } from '../../../kernel/transaction.ts'

/**
 * Settings of a transaction on the queue. The queue may be empty at one moment and hold a million rows at the next, and what the
 * planner knows of it is a minute old at best: without the first, a plan made for an empty table reads the full one, once for
 * each subscription. `durable: false`: a commit is not waited for until it is on disk.
 */
export function queueSettings({ durable }: { readonly durable: boolean }): Statement {
  return sql`SELECT set_config('enable_seqscan', 'off', true),
    set_config('synchronous_commit', ${durable ? 'on' : 'off'}, true)`
}
