import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import { type MailLimit, type MailPurpose, mailCountedMs } from './limits.ts'
import type { MailKind } from './messages.ts'

/** Exactly one of the two: whose message it is. */
export type MailOwner =
  | { readonly organizationId: string; readonly accountId?: never }
  | { readonly accountId: string; readonly organizationId?: never }

export type SealedMail = MailOwner & {
  readonly mailId: string
  readonly kind: MailKind
  readonly recipient: string
  readonly sealed: Uint8Array
  readonly priority: number
  /** Until when it is worth sending, ISO 8601; null: always. */
  readonly expiresAt: string | null
  readonly now: number
}

/** A message that this worker has, until its lease is over. */
export interface ClaimedMail {
  readonly mailId: string
  readonly kind: string
  readonly recipient: string
  readonly sealed: Buffer
  readonly createdAt: string
  readonly expiresAt: string | null
  /** This attempt counted. */
  readonly attempts: number
}

export interface Claim {
  readonly now: number
  readonly leaseMs: number
  readonly attemptsMax: number
  readonly count: number
}

/** Null, or, where a limit is reached and nothing was written, from when on there is room again (ISO 8601). */
export async function insertMail(
  tx: Tx,
  mail: SealedMail,
  { purpose, limits }: { readonly purpose: MailPurpose; readonly limits: readonly MailLimit[] },
): Promise<string | null> {
  const { mailId, organizationId = null, accountId = null, kind, recipient, sealed, priority, expiresAt, now } = mail
  const message = {
    mail_id: mailId,
    organization_id: organizationId,
    account_id: accountId,
    created_at: iso(now),
    expires_at: expiresAt,
    ...{ kind, recipient, priority },
  }
  const [row] = await tx.rows<{ freeAt: string | null }>(sql`SELECT portico.enqueue_mail(
    ${JSON.stringify(message)}::jsonb, ${Buffer.from(sealed)}, ${purpose}, ${JSON.stringify(limits)}::jsonb) AS "freeAt"`)
  return row!.freeAt
}

/**
 * Takes messages that are due, the most urgent and then the longest overdue first, and counts the attempt before it is made: a message that ends
 * the process each time is given up like any other.
 */
export function claimMail(database: Database, { now, leaseMs, attemptsMax, count }: Claim): Promise<ClaimedMail[]> {
  return database.as('portico_system', async (tx) => {
    const [, claimed] = await Promise.all([
      tx.rows(sql`
        UPDATE portico.mail_message SET state = 'failed', sealed = NULL, finished_at = ${iso(now)},
          last_error = 'The last attempt did not come to an end.'
        WHERE state = 'sending' AND due_at <= ${iso(now)} AND attempts >= ${attemptsMax}`),
      // An array, and not a join: a join may run the inner SELECT again for each row, and then LIMIT limits nothing.
      tx.rows<ClaimedMail>(sql`
        UPDATE portico.mail_message SET state = 'sending', attempts = attempts + 1, due_at = ${iso(now + leaseMs)}
        WHERE mail_id = ANY (ARRAY(
          SELECT mail_id FROM portico.mail_message
          WHERE state IN ('queued', 'sending') AND due_at <= ${iso(now)}
          ORDER BY priority, due_at LIMIT ${count} FOR UPDATE SKIP LOCKED))
        RETURNING mail_id AS "mailId", kind, recipient, sealed, created_at AS "createdAt",
          expires_at AS "expiresAt", attempts`),
    ])
    return claimed
  })
}

/** Whoever has it by now: it was sent, and must not be sent again. */
export async function markSent(database: Database, { mailId }: ClaimedMail, now: number): Promise<void> {
  await database.as('portico_system', (tx) =>
    tx.rows(sql`
      UPDATE portico.mail_message SET state = 'sent', sealed = NULL, last_error = NULL, finished_at = ${iso(now)}
      WHERE mail_id = ${mailId} AND state IN ('queued', 'sending')`),
  )
}

/** Puts it back until `dueAt`, unless somebody else has taken it over since. */
export async function putBack(database: Database, mail: ClaimedMail, dueAt: number, reason: string): Promise<void> {
  await database.as('portico_system', (tx) =>
    tx.rows(sql`
      UPDATE portico.mail_message SET state = 'queued', due_at = ${iso(dueAt)}, last_error = ${reason}
      WHERE mail_id = ${mail.mailId} AND state = 'sending' AND attempts = ${mail.attempts}`),
  )
}

/** Gives it up for good, unless somebody else has taken it over since. */
export async function markFailed(database: Database, mail: ClaimedMail, now: number, reason: string): Promise<void> {
  await database.as('portico_system', (tx) =>
    tx.rows(sql`
      UPDATE portico.mail_message SET state = 'failed', sealed = NULL, finished_at = ${iso(now)}, last_error = ${reason}
      WHERE mail_id = ${mail.mailId} AND state = 'sending' AND attempts = ${mail.attempts}`),
  )
}

const keptForMs = 30 * 24 * 60 * 60 * 1000

/** Removes what was finished 30 days ago, and what no limit counts any more. Returns how many messages that were. */
export async function removeOldMail(database: Database, now: number): Promise<number> {
  return database.as('portico_system', async (tx) => {
    const [messages] = await Promise.all([
      tx.rows(sql`DELETE FROM portico.mail_message WHERE finished_at < ${iso(now - keptForMs)} RETURNING 1`),
      tx.rows(sql`DELETE FROM portico.mail_count WHERE created_at < ${iso(now - mailCountedMs)}`),
    ])
    return messages.length
  })
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
