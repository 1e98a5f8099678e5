import type { RecordQuery } from '../../shared/records/query.ts'
import { findRecords } from '../../shared/records/read-store.ts'
import { type RecordRow, type RecordView, viewOf } from '../../shared/records/record.ts'
import type { RecordScope } from '../../shared/records/scope.ts'

/** Adds the records behind references, one look-up for each reference field; what the caller cannot see is null. */
export async function withExpanded(
  { tx, caller }: RecordScope,
  rows: readonly RecordRow[],
  records: readonly RecordView[],
  expand: RecordQuery['expand'],
): Promise<void> {
  const found = await Promise.all(
    expand.map(({ field, access }) => {
      const ids = new Set(rows.flatMap((row) => (row[field.column] as string | null) ?? []))
      return ids.size === 0 ? [] : findRecords(tx, caller, access, [...ids])
    }),
  )
  const views = expand.map(({ access }, index) => {
    return new Map(found[index]!.map((row) => [row.record_id, viewOf(row, access, access.readable)]))
  })
  records.forEach((record, position) => {
    record.expanded = Object.fromEntries(
      expand.map(({ field }, index) => [
        field.fieldKey,
        views[index]!.get(rows[position]![field.column] as string) ?? null,
      ]),
    )
  })
}
