import { summaryOfViews } from '../../../shared/modelling/changes.ts'
import type { ModelDocument } from '../../../shared/modelling/document.ts'
import { orderedChange, orderedDocument } from '../../../shared/modelling/order.ts'
import type { ReleaseRow } from './store.ts'

/** Releases as the API shows them. */
export function itemOf(row: ReleaseRow) {
  const { releaseNumber, note, changes, rolledBackTo, publishedAt, publishedBy } = row
  // What no builder has published, whoever holds the database has: `npm run model`, or the demo.
  const publisher = publishedBy === null ? { kind: 'system', id: 'terminal' } : { kind: 'builder', id: publishedBy }
  return { releaseNumber, note, summary: summaryOfViews(changes), rolledBackTo, publishedAt, publishedBy: publisher }
}

export function releaseOf(row: ReleaseRow & { readonly document: ModelDocument }) {
  return { ...itemOf(row), changes: row.changes.map(orderedChange), document: orderedDocument(row.document) }
}
