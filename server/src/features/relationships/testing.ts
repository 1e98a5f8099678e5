import type { RecordService, Sent } from '../../../test/support/record-service.ts'
import type { TestCredential } from '../../../test/support/tenants.ts'
import type { ModelDocument } from '../../shared/modelling/document.ts'

/** For tests of relationships: companies, people and meetings, and a relationship of every kind. */
const object = (objectKey: string) => ({
  objectKey,
  label: objectKey,
  pluralLabel: objectKey,
  nameField: 'name',
  fields: [
    { fieldKey: 'name', label: 'Name', dataType: 'text' as const },
    { fieldKey: 'size', label: 'Size', dataType: 'integer' as const },
  ],
})

const relationship = (
  from: string,
  to: string,
  cardinality: 'one-to-many' | 'many-to-many',
  deleteRule: 'unlink' | 'restrict' | 'archive',
) => ({ label: `${to} of it`, inverseLabel: `${from} of it`, cardinality, from, to, deleteRule })

export const relationships = {
  attendees: relationship('meeting', 'person', 'many-to-many', 'unlink'),
  employees: relationship('company', 'person', 'one-to-many', 'restrict'),
  agenda: relationship('company', 'meeting', 'one-to-many', 'archive'),
  knows: relationship('person', 'person', 'many-to-many', 'unlink'),
  'leads-to': relationship('meeting', 'meeting', 'many-to-many', 'archive'),
}

const all = { read: true, create: true, update: true, archive: true }

export const model = {
  objects: [object('company'), object('person'), object('meeting')],
  relationships,
  roles: {
    // Does everything, sees what its role and place show.
    agent: { label: 'Agent', objects: { company: all, person: all, meeting: all } },
    // Sees companies and people, and knows nothing of meetings.
    clerk: { label: 'Clerk', objects: { company: { read: true }, person: { read: true, update: true } } },
  },
} satisfies ModelDocument

export interface LinkView {
  readonly relationshipId: string
  readonly relationshipKey: string
  readonly fromRecordId: string
  readonly fromObjectKey: string
  readonly toRecordId: string
  readonly toObjectKey: string
  readonly createdAt: string
}

export interface RelatedView {
  readonly relationshipId: string
  readonly relationshipKey: string
  readonly direction: string
  readonly label: string
  readonly record: { readonly recordId: string; readonly objectKey: string; readonly displayName: string | null }
}

type PageOf<T> = { readonly items: readonly T[]; readonly nextCursor: string | null }

export type LinkClient = ReturnType<typeof linkClient>

/** The operations on relationships as one credential. */
export function linkClient({ send }: RecordService, saasAppId: string, credential: TestCredential) {
  const app = { saasAppId }
  return {
    list: (query: Sent['query'] = {}) =>
      send<PageOf<LinkView>>('developerRelationshipsList', credential, { params: app, query }),
    create: (relationshipKey: string, fromRecordId: string, toRecordId: string) =>
      send<LinkView>('developerRelationshipsCreate', credential, {
        params: app,
        body: { relationshipKey, fromRecordId, toRecordId },
      }),
    remove: (relationshipId: string) =>
      send<LinkView>('developerRelationshipsDelete', credential, { params: { ...app, relationshipId } }),
    ofRecord: (objectKey: string, recordId: string, query: Sent['query'] = {}) =>
      send<PageOf<RelatedView>>('developerRecordsListRelationships', credential, {
        params: { ...app, objectKey, recordId },
        query,
      }),
  }
}

/** Every item of a list, in pages of the given size. */
export async function everyPage<T>(
  page: (query: Record<string, unknown>) => Promise<{ readonly status: number; readonly body: PageOf<T> }>,
  pageSize: number,
): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null | undefined
  do {
    const { status, body } = await page({ pageSize, ...(cursor && { cursor }) })
    if (status !== 200) throw new Error(JSON.stringify(body))
    items.push(...body.items)
    cursor = body.nextCursor
  } while (cursor)
  return items
}
