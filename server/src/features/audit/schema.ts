import Type from 'typebox'
import { Nullable, PageSize, PlatformActor, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'

/** Shapes of the audit log. */
const name = (description: string, example: string) =>
  Type.String({ maxLength: 200, pattern: '^[^\\u0000]+$', description, examples: [example] })

const saasAppId = Uuid('The application that it was done to.')
const organizationId = Uuid('The organization that it was done to or in.', '0199a1b2-0000-7000-8000-0000000000b1')
const actorId = name('Who did it: the id of a builder or user, a key id, or the name of a part of the service.', 'keys')
const action = name('What was done: the type of the target, and a participle.', 'credential.rotated')
const targetType = name('The type of what it was done to.', 'credential')
const targetId = name('The id of what it was done to.', '4fGh6JkLm8Np')

export const AuditQuery = Strict({
  from: Type.Optional(Timestamp('Entries of this moment or later.', '2026-09-01T00:00:00.000Z')),
  to: Type.Optional(Timestamp('Entries before this moment.', '2026-10-01T00:00:00.000Z')),
  actorId: Type.Optional(actorId),
  action: Type.Optional(action),
  targetType: Type.Optional(targetType),
  targetId: Type.Optional(targetId),
  saasAppId: Type.Optional(saasAppId),
  organizationId: Type.Optional(organizationId),
  pageSize: Type.Optional(PageSize()),
  cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.', examples: ['q83vEjRW'] })),
})

const state = (description: string, example: object) =>
  Nullable(Type.Object({}, { additionalProperties: true, description, examples: [example] }))

export const AuditEntry = Strict(
  {
    entryId: Uuid('The entry.', '0199a1b2-0000-7000-8000-0000000000a1'),
    occurredAt: Timestamp('When it was done.'),
    actor: PlatformActor('Who did it.'),
    action,
    target: Strict({ type: targetType, id: targetId }, { description: 'What it was done to.' }),
    saasAppId: Nullable(saasAppId),
    organizationId: Nullable(organizationId),
    before: state(
      'The target as it was, without secrets; null where it was made. Of more than 64 KB: `tooLarge`, its bytes and sha256.',
      { name: 'Northwind' },
    ),
    after: state(
      'The target as it became, without secrets; null where it ceased to be. Of more than 64 KB as `before`.',
      { name: 'Northwind Ltd' },
    ),
    correlationId: Uuid('The request that did it.', '0199a1b2-0000-7000-8000-0000000000c1'),
  },
  { title: 'AuditEntry' },
)

export const AuditLog = Strict(
  {
    items: Type.Array(AuditEntry, { description: 'Entries, newest first.' }),
    nextCursor: Nullable(
      Type.String({ description: 'Continues the list; null on the last page.', examples: ['q83vEjRW'] }),
    ),
  },
  { title: 'AuditLog' },
)
