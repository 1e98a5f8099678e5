import { fail } from '../../../kernel/errors.ts'
import { findExcess } from '../../../kernel/excess.ts'
import type { Reply } from '../../../kernel/operation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { ModelDocument } from '../../../shared/modelling/document.ts'
import { type PublishedModel, readPublished } from '../../../shared/modelling/published.ts'
import type { PlatformContext } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import { lockApplication } from '../applications/store.ts'
import * as store from './store.ts'

/** The draft of an application: what it is where nobody has begun one, and how it changes. */
export interface DraftView {
  readonly document: ModelDocument
  readonly revision: number
  readonly basedOnRelease: number
  readonly updatedAt: string | null
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
export async function draftOf(context: PlatformContext, place: store.Place): Promise<DraftView> {
  const draft = await store.findDraft(context.tx, place)
  if (draft) return draft
  const { document, releaseNumber } = await publishedOf(context, place)
  return { document, revision: 0, basedOnRelease: releaseNumber, updatedAt: null, updatedBy: null }
}

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
 * it goes to the audit log. A whole document that is saved counts as made from what is published now.
 */
export async function changeDraft(
  context: PlatformContext,
  saasAppId: string,
  { expectedRevision, ifMatch }: Guard,
  edit: (document: ModelDocument) => ModelDocument,
  tell: (before: ModelDocument, after: ModelDocument) => Told,
  isWhole = false,
): Promise<Reply> {
  const { tx, caller, now } = context
  const place = placeOf(context, saasAppId)
  await lockApplication(tx, place.accountId, place.appId)
  const before = await draftOf(context, place)
  requireRevision(before.revision, expectedRevision, ifMatch)
  const document = edit(before.document)
  requireFewEnough(document)
  requireRoom(document)
  requireStorable(document)
  const { releaseNumber } = isWhole ? await publishedOf(context, place) : { releaseNumber: before.basedOnRelease }
  const draft = {
    document,
    revision: before.revision + 1,
    basedOnRelease: releaseNumber,
    updatedAt: new Date(now).toISOString(),
    updatedBy: caller.builderId,
  }
  await store.saveDraft(tx, place, draft)
  await recordAudit(context, { ...tell(before.document, draft.document), saasAppId: place.appId })
  return answer(draft)
}

export function answer(draft: DraftView): Reply {
  return { status: 200, body: draft, headers: { etag: `"${draft.revision}"` } }
}
