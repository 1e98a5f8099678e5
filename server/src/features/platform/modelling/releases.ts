import { summaryOfViews } from '../../../shared/modelling/changes.ts'
import type { ModelDocument } from '../../../shared/modelling/document.ts'
import type { ReleaseRow } from './store.ts'

/** Releases as the API shows them. */
export function itemOf(row: ReleaseRow) {
  const { releaseNumber, note, changes, rolledBackTo, publishedAt, publishedBy } = row
  return { releaseNumber, note, summary: summaryOfViews(changes), rolledBackTo, publishedAt, publishedBy }
}

export function releaseOf(row: ReleaseRow & { readonly document: ModelDocument }) {
  return { ...itemOf(row), changes: row.changes, document: row.document }
}
