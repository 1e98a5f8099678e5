import type { Operation } from '../../../kernel/operation.ts'
import { type Context, operation } from '../../../shared/context.ts'
import { basePath, etag, moduleScope, writingOf } from '../declaration.ts'
import { contacts } from '../descriptors/contacts.ts'
import { inFlatTerms, nested, rowOf } from '../row.ts'
import { RowParams, type Shapes } from '../schemas.ts'
import { mergeContacts, reversibleDays, separateContacts } from './merging.ts'
import { mergeShapes } from './schema.ts'

export function mergeOperation(shapes: Shapes): Operation<Context> {
  const { Merge, Merged } = mergeShapes(shapes)
  return operation({
    ...writingOf(contacts),
    id: 'developerModulesContactsMerge',
    objectActions: ['update', 'archive'],
    method: 'POST',
    path: `${basePath}/contacts/{recordId}:merge`,
    summary: 'Make one contact of two, or take that back.',
    description: `The contact of the path survives. It takes over what it lacks, and entries of e-mail addresses, telephone numbers, postal addresses and tags; fields in the body say otherwise. Live records and relationships that refer to the other contact refer to the survivor from then on, at most 1,000 of them. The other one is archived and points to the survivor (\`mergedIntoId\`). For ${reversibleDays} days \`undo\` brings it back, with what was moved and still refers to the survivor; the survivor's fields become what they were where nobody has changed them since. Needs the right to update and to archive contacts, and to see both.`,
    params: RowParams,
    body: Merge,
    ifMatch: true,
    responses: { 200: Merged },
    responseHeaders: etag,
    errors: [
      'object_not_found',
      'record_not_found',
      'revision_conflict',
      'record_archived',
      'reference_not_found',
      'merge_too_large',
      'merge_not_reversible',
      'field_value_invalid',
      'field_read_only',
      'required_field_missing',
      'record_too_large',
      'ownership_conflict',
      'duplicate_value',
      'permission_denied',
    ],

    async handler(context, { params, body, ifMatch }) {
      const scope = await moduleScope(context, contacts)
      const { otherRecordId, undo, ...rest } = body as { otherRecordId: string; undo?: boolean }
      const changes = nested(rest)
      const { row, reversibleUntil } = await inFlatTerms(() =>
        undo
          ? separateContacts(scope, params.recordId, otherRecordId, changes, ifMatch)
          : mergeContacts(scope, params.recordId, otherRecordId, changes, ifMatch),
      )
      return {
        status: 200,
        body: { contact: rowOf(row, scope), otherRecordId: otherRecordId.toLowerCase(), reversibleUntil },
        headers: { etag: `"${row.revision}"` },
      }
    },
  })
}
