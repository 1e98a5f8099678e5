import { Strict, Uuid } from '../../kernel/schemas.ts'
import { relationshipKey } from '../../shared/relationships/schema.ts'

export const NewLink = Strict(
  {
    relationshipKey,
    fromRecordId: Uuid('The record at `from`.', '0199a1b2-0000-7000-8000-0000000000aa'),
    toRecordId: Uuid('The record at `to`.', '0199a1b2-0000-7000-8000-0000000000ab'),
  },
  { title: 'RelationshipCreate' },
)
