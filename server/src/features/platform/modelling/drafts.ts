import { fail } from '../../../kernel/errors.ts'
import { findExcess } from '../../../kernel/excess.ts'
import type { Reply } from '../../../kernel/operation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { ModelDocument } from '../../../shared/modelling/document.ts'
import { orderedDocument } from '../../../shared/modelling/order.ts'
import { type PublishedModel, readPublished } from '../../../shared/modelling/published.ts'
import { rebase } from '../../../shared/modelling/rebase.ts'
import type { PlatformContext } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import { lockApplication } from '../applications/store.ts'
import * as store from './store.ts'

/** The draft of an application: what it is where nobody has begun one, and how it changes. */
export interface Draft {
  readonly document: ModelDocument
  /** 0 where there is none. A release that is newer than the one it was begun from counts as a change of it, too. */
  readonly revision: number
  readonly basedOnRelease: number
  readonly newestRelease: number
  /** Paths of what a newer release has changed as well. Then the draft is as it was before that release. */
  readonly conflicts: readonly string[]
  readonly updatedAt: string | null
  /** A builder. */
  readonly updatedBy: string | null
}

export function placeOf({ caller }: Pick<PlatformContext, 'caller'>, saasAppId: string): store.Place {
  return { accountId: caller.accountId, appId: saasAppId.toLowerCase() }
}

export async function publishedOf({ tx }: Pick<PlatformContext, 'tx'>, place: store.Place): Promise<PublishedModel> {
  const published = await readPublished(tx, place.appId)
  if (!published) throw fail('application_not_found')
  return published
}

/** Without a draft it is the published model. */
export async function draftOf(context: PlatformContext, place: store.Place): Promise<Draft> {
  const kept = await store.findDraft(context.tx, place)
  if (kept) {
    const revision = kept.revision + kept.newestRelease - kept.basedOnRelease
    return { ...kept, ...(await rebased(context, place, kept)), revision }
  }
  const { document, releaseNumber } = await publishedOf(context, place)
  const releases = { basedOnRelease: releaseNumber, newestRelease: releaseNumber }
  return { document, revision: 0, ...releases, conflicts: [], updatedAt: null, updatedBy: null }
}

/** Begun from the newest release, as far as what was published meanwhile lets it. */
async function rebased(
  context: PlatformContext,
  place: store.Place,
  { document, basedOnRelease, newestRelease }: Pick<Draft, 'document' | 'basedOnRelease' | 'newestRelease'>,
): Promise<Pick<Draft, 'document' | 'basedOnRelease' | 'conflicts'>> {
  if (basedOnRelease >= newestRelease) return { document, basedOnRelease, conflicts: [] }
  const base = await store.findRelease(context.tx, place, String(basedOnRelease))
  const published = await publishedOf(context, place)
  const merged = rebase(base?.document ?? { objects: [] }, document, published.document)
  // Together they may be more than a model may have.
  const excess = findExcess(ModelDocument, merged.document)
  const conflicts = excess ? [excess.path.split('/')[1]!, ...merged.conflicts] : merged.conflicts
  if (conflicts.length > 0) return { document, basedOnRelease, conflicts }
  return { document: merged.document, basedOnRelease: published.releaseNumber, conflicts }
}

/** Throws `draft_outdated` with the paths of what a newer release has changed as well. */
export function requireUpToDate({ conflicts }: Draft): void {
  if (conflicts.length === 0) return
  const details = conflicts.slice(0, detailsMax).map((path) => {
    return { field: path, code: 'draft_outdated', message: `${path} was changed by the draft and by a newer release.` }
  })
  throw fail('draft_outdated', { details })
}

/** Paths that one answer names. */
const detailsMax = 100

export interface Guard {
  readonly expectedRevision: number | undefined
  readonly ifMatch: number | undefined
}

/**
 * A draft may be as large as a whole document that is saved at once. Without a limit a draft that is put together part by
 * part would become one that no request can read any more, not even to discard it.
 */
export const draftBytesMax = 4 * 1024 * 1024

function requireRoom(document: ModelDocument): void {
  if (Buffer.byteLength(JSON.stringify(document)) <= draftBytesMax) return
  throw fail('payload_too_large', { message: `The draft would be larger than ${draftBytesMax} bytes.` })
}

/** Part by part a draft gets no more objects, fields and roles than a whole document may have. */
function requireFewEnough(document: ModelDocument): void {
  const excess = findExcess(ModelDocument, document)
  if (!excess) return
  const field = ['document', ...excess.path.split('/').slice(1)].join('.')
  throw fail('validation_failed', { details: [{ field, code: excess.code, message: excess.message }] })
}

/** PostgreSQL keeps neither U+0000 nor half a surrogate pair; the schema of a document lets both pass as text. */
function requireStorable(document: ModelDocument): void {
  const field = unstorablePath(document, 'document')
  if (field === undefined) return
  throw fail('validation_failed', { field, message: 'Must be well-formed text without the character U+0000.' })
}

function unstorablePath(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : path
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, part] of Object.entries(value)) {
    if (!isStorable(key)) return path
    const found = unstorablePath(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

/** What was changed, for the audit log. */
export interface Told {
  readonly action: string
  readonly target: { readonly type: string; readonly id: string }
  readonly before: object | null
  readonly after: object | null
}

/**
 * Changes the draft, and begins one where there is none. `edit` makes the new document of the old one; `tell` says what of
 * it goes to the audit log. `madeFrom` is for a whole document that is saved: the release that it was made from, whatever
 * the draft was begun from.
 */
export async function changeDraft(
  context: PlatformContext,
  saasAppId: string,
  { expectedRevision, ifMatch }: Guard,
  edit: (document: ModelDocument) => ModelDocument,
  tell: (before: ModelDocument, after: ModelDocument) => Told,
  madeFrom?: (newestRelease: number) => number,
): Promise<Reply> {
  const { tx, caller, now } = context
  const place = placeOf(context, saasAppId)
  await lockApplication(tx, place.accountId, place.appId)
  const before = await draftOf(context, place)
  requireRevision(before.revision, expectedRevision, ifMatch)
  const edited = edit(before.document)
  requireFewEnough(edited)
  requireStorable(edited)
  const { newestRelease } = before
  const from = madeFrom?.(newestRelease) ?? before.basedOnRelease
  const saved = await rebased(context, place, { document: edited, basedOnRelease: from, newestRelease })
  requireRoom(saved.document)
  const newer = newestRelease - saved.basedOnRelease
  const draft = {
    document: saved.document,
    // Newer releases are counted when it is read.
    revision: Math.max(1, before.revision + 1 - newer),
    basedOnRelease: saved.basedOnRelease,
    updatedAt: new Date(now).toISOString(),
    updatedBy: caller.builderId,
  }
  await store.saveDraft(tx, place, draft)
  await recordAudit(context, { ...tell(before.document, draft.document), saasAppId: place.appId })
  return answer({ ...draft, revision: draft.revision + newer })
}

/** The draft as the API shows it. */
export function answer(draft: Omit<Draft, 'newestRelease' | 'conflicts'>): Reply {
  const { document, revision, basedOnRelease, updatedAt, updatedBy } = draft
  const builder = updatedBy === null ? null : { kind: 'builder', id: updatedBy }
  const body = { document: orderedDocument(document), revision, basedOnRelease, updatedAt, updatedBy: builder }
  return { status: 200, body, headers: { etag: `"${revision}"` } }
}
