import { type ErrorDetail, fail } from '../../../kernel/errors.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import { asOwner } from '../../../shared/database/as-owner.ts'
import { brokenConstraint } from '../../../shared/database/failures.ts'
import { limited, TookTooLong } from '../../../shared/modelling/deadline.ts'
import type { ModelDocument } from '../../../shared/modelling/document.ts'
import { TablesInUse } from '../../../shared/modelling/lock-tables.ts'
import type { Issue } from '../../../shared/modelling/problems.ts'
import { type Assessment, assess, publish } from '../../../shared/modelling/publish.ts'
import type { PublishedModel } from '../../../shared/modelling/published.ts'
import { RowsAppeared } from '../../../shared/modelling/steps.ts'
import { takeTurn } from '../../../shared/modelling/turn.ts'
import type { PlatformContext } from '../../../shared/platform-context.ts'

/** Indexes that are being built hold the turn for minutes; who publishes waits for small ones and is told of large ones. */
const turnPatienceMs = 3000
const detailsMax = 100

/** For looking at the data of all organisations, and for carrying a release out. What one release may make takes less. */
const limitMs = { assess: 30_000, publish: 60_000 }

/** Compares a document with what is published, and counts what stands against it. */
export async function assessed(
  tx: Tx,
  published: PublishedModel,
  document: ModelDocument,
  options: { readonly confirmDataLoss?: boolean } = {},
): Promise<Assessment> {
  return assess(limited(tx, limitMs.assess), published, document, options).catch((error: unknown) => {
    if (error instanceof TookTooLong) throw fail('query_too_expensive', { cause: error })
    throw error
  })
}

export async function requireTurn(tx: Tx, appId: string): Promise<void> {
  if (!(await takeTurn(tx, appId, turnPatienceMs))) throw fail('model_busy', { retryAfterSeconds: 5 })
}

/** Brings the application from what is published to `document` and returns the number of the release. */
export async function carryOut(
  { tx, caller }: PlatformContext,
  published: PublishedModel,
  document: ModelDocument,
  release: { readonly note: string; readonly confirmDataLoss: boolean; readonly rolledBackTo?: number },
): Promise<number> {
  const { confirmDataLoss, ...told } = release
  const assessment = await assessed(tx, published, document, { confirmDataLoss })
  if (assessment.problems.length > 0) throw fail('model_invalid', { details: detailsOf(assessment.problems) })
  if (assessment.changes.length === 0) throw fail('model_unchanged')
  if (assessment.refusals.length > 0) throw fail('model_change_refused', { details: detailsOf(assessment.refusals) })
  try {
    const limitedTx = limited(tx, limitMs.publish)
    return await asOwner(tx, () =>
      publish(limitedTx, published, assessment, { ...told, publishedBy: caller.builderId }),
    )
  } catch (error) {
    if (error instanceof TablesInUse) throw fail('model_busy', { cause: error })
    if (error instanceof TookTooLong) {
      const message = `The release takes longer than ${limitMs.publish / 1000} s. Publish it in parts.`
      throw fail('model_change_refused', { message, cause: error })
    }
    if (error instanceof RowsAppeared || brokenConstraint(error, 'reference') !== undefined) {
      const message = 'Something that would be lost was written in this moment.'
      throw fail('model_change_refused', { message, cause: error })
    }
    throw error
  }
}

function detailsOf(issues: readonly Issue[]): ErrorDetail[] {
  return issues.slice(0, detailsMax).map(({ path, code, message }) => ({ field: path, code, message }))
}
