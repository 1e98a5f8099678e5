import type { Expansion, RecordQuery } from '../../shared/records/query.ts'
import { findRecords } from '../../shared/records/read-store.ts'
import { type RecordRow, type RecordView, type RelatedViews, viewOf } from '../../shared/records/record.ts'
import type { RecordScope } from '../../shared/records/scope.ts'
import type { Hop } from '../../shared/relationships/definitions.ts'
import { findRelated } from '../../shared/relationships/expand.ts'

/** What one expansion shows of a record. */
type Shown = (row: RecordRow) => RecordView | RelatedViews | null

/** Adds the records behind references and at the other end of relationships: one look-up for each name. */
export async function withExpanded(
  scope: RecordScope,
  rows: readonly RecordRow[],
  records: readonly RecordView[],
  expand: RecordQuery['expand'],
): Promise<void> {
  const shown = await Promise.all(
    expand.map((one) => (one.hop ? relatedOf(scope, rows, one.hop) : referencedBy(scope, rows, one))),
  )
  records.forEach((record, position) => {
    record.expanded = Object.fromEntries(expand.map(({ name }, index) => [name, shown[index]!(rows[position]!)]))
  })
}

/** What the caller cannot see is null. */
async function referencedBy(
  { tx, caller }: RecordScope,
  rows: readonly RecordRow[],
  { field, access }: Extract<Expansion, { field: unknown; access: unknown }>,
): Promise<Shown> {
  const ids = new Set(rows.flatMap((row) => (row[field.column] as string | null) ?? []))
  const found = ids.size === 0 ? [] : await findRecords(tx, caller, access, [...ids])
  const views = new Map(found.map((row) => [row.record_id, viewOf(row, access, access.readable)]))
  return (row) => views.get(row[field.column] as string) ?? null
}

async function relatedOf({ tx, caller }: RecordScope, rows: readonly RecordRow[], hop: Hop): Promise<Shown> {
  const { access } = hop
  const live = rows.filter((row) => row.archived_at === null).map((row) => row.record_id)
  const found = live.length === 0 ? undefined : await findRelated(tx, caller, hop, live)
  return ({ record_id }) => {
    const { rows: related = [], hasMore = false } = found?.get(record_id) ?? {}
    return { records: related.map((row) => viewOf(row, access, access.readable)), hasMore }
  }
}
