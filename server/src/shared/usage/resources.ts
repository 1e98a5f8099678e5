import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** An application of the account that the transaction is bound to. */
export interface MeasuredApplication {
  readonly saasAppId: string
  readonly schemaName: string
}

/**
 * Says how much of a resource the application has now, or had on the day (UTC) where it is counted by day; undefined where that cannot be said. One statement, issued at once,
 * without awaiting anything before: it has to leave together with its time limit (`measure.ts`).
 */
type Measure = (tx: Tx, application: MeasuredApplication, day: string) => Promise<number | undefined>

export interface MeteredResource {
  readonly label: string
  readonly unit: 'record' | 'byte' | 'delivery' | 'submission' | 'chunk'
  readonly description: string
  /** Null where nothing of it can exist yet: it is then told as not measured, and never as zero. */
  readonly measure: Measure | null
  /** What happened on a day, and not what there is: yesterday's is measured once more today. */
  readonly byDay?: true
}

async function quantityOf(found: Promise<{ quantity: number | null }[]>): Promise<number | undefined> {
  const [row] = await found
  return row?.quantity ?? undefined
}

/** What applications are metered by. The feature that brings a resource adds its statement here. */
export const meteredResources = {
  records: {
    label: 'Records',
    unit: 'record',
    description: 'Records in all organizations of the application, archived ones included.',
    // 3 million: 0.45 s, or up to 5 s just after they were written, before autovacuum has seen them.
    measure: (tx, { saasAppId }) =>
      quantityOf(tx.rows<{ quantity: number | null }>(sql`SELECT portico.count_records(${saasAppId}) AS quantity`)),
  },
  storageBytes: {
    label: 'Storage',
    unit: 'byte',
    description:
      "The size on disk of the application's own tables, with their indexes. What all applications keep in common tables (history, search) is not in it.",
    measure: (tx, { schemaName }) =>
      quantityOf(
        tx.rows<{ quantity: number }>(sql`
          SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS quantity
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = ${schemaName} AND c.relkind = 'r'`),
      ),
  },
  deliveries: {
    label: 'Webhook deliveries',
    unit: 'delivery',
    description: 'Attempts to deliver an event to a webhook, on the day (UTC).',
    byDay: true,
    measure: (tx, { saasAppId }, day) =>
      quantityOf(
        tx.rows<{ quantity: number }>(sql`
          SELECT coalesce((SELECT u.attempts FROM portico.webhook_usage u
            WHERE u.app_id = a.app_id AND u.day = ${day}::date), 0) AS quantity
          FROM portico.application a WHERE a.app_id = ${saasAppId}`),
      ),
  },
  submissions: {
    label: 'Form submissions',
    unit: 'submission',
    description: 'Submissions that outside forms accepted.',
    measure: null,
  },
  aiChunks: {
    label: 'AI chunks',
    unit: 'chunk',
    description: 'Pieces of text in AI indexes.',
    measure: null,
  },
} as const satisfies Record<string, MeteredResource>

export type ResourceKey = keyof typeof meteredResources
export const resourceKeys = Object.keys(meteredResources) as ResourceKey[]
export const resourceOf = (key: ResourceKey): MeteredResource => meteredResources[key]
/** Those that have a source. */
export const measuredKeys = resourceKeys.filter((key) => resourceOf(key).measure !== null)
export const measuredByDay = measuredKeys.filter((key) => resourceOf(key).byDay === true)
