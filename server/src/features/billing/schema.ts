import Type from 'typebox'
import { Nullable, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { Plan } from '../../shared/billing-catalog.ts'
import { resourceKeys } from '../../shared/usage/resources.ts'

/** Shapes of plans, usage and entitlements. */
const resourceKey = Type.Enum([...resourceKeys], { description: 'What is metered.', examples: ['records'] })
const measured = Type.Boolean({
  description: 'Is it measured? What is not has no figures; that is not the same as zero.',
  examples: [true],
})
const saasAppId = Uuid('The application.')
const day = (description: string, example: string) => Type.String({ format: 'date', description, examples: [example] })

export const Catalog = Strict(
  {
    currentPlanKey: Type.String({ description: 'The plan of this account.', examples: ['free'] }),
    plans: Type.Array(Plan, { description: 'Plans that the operator of the service offers.' }),
    resources: Type.Array(
      Strict({
        resourceKey,
        label: Type.String({ description: 'What people call it.', examples: ['Records'] }),
        unit: Type.String({ description: 'What is counted.', examples: ['record'] }),
        description: Type.String({ description: 'What counts.', examples: ['Records in all organizations.'] }),
        measured,
      }),
      { description: 'What applications are metered by.' },
    ),
  },
  { title: 'BillingCatalog' },
)

export const UsageQuery = Strict({
  from: Type.Optional(day('The first day, UTC. 29 days before `to` unless said otherwise.', '2026-09-01')),
  to: Type.Optional(day('The last day, UTC. Today unless said otherwise. At most 92 days in all.', '2026-09-30')),
  saasAppId: Type.Optional(Uuid('Only this application.')),
})

export const Usage = Strict(
  {
    from: day('The first day.', '2026-09-01'),
    to: day('The last day.', '2026-09-30'),
    resources: Type.Array(Strict({ resourceKey, measured }), { description: 'What there could be figures of.' }),
    items: Type.Array(
      Strict({
        saasAppId,
        day: day('The day, UTC.', '2026-09-14'),
        resourceKey,
        quantity: Type.Integer({
          minimum: 0,
          description: 'Exact, in the unit of the resource.',
          examples: [12_840],
        }),
        measuredAt: Timestamp('When it was measured: for today now, for other days at their end.'),
      }),
      { description: 'Figures, newest day first. A figure that could not be made is absent, never zero.' },
    ),
  },
  { title: 'Usage' },
)

export const Entitlements = Strict(
  {
    items: Type.Array(
      Strict({
        entitlementId: Uuid('The entitlement.', '0199a1b2-0000-7000-8000-000000000e01'),
        listingKey: Type.String({ description: 'The listing of the marketplace.', examples: ['invoice-reader'] }),
        listingName: Type.String({ description: 'What people call it.', examples: ['Invoice reader'] }),
        state: Type.Enum(['active', 'expired'], { description: 'Does it hold?', examples: ['active'] }),
        grantedAt: Timestamp('When it was granted.'),
        expiresAt: Nullable(Timestamp('When it ends; null: never.', '2027-09-14T09:30:00.000Z')),
      }),
      { description: 'By key of the listing.' },
    ),
    nextCursor: Type.Null({ description: 'All of them are on this page.', examples: [null] }),
  },
  { title: 'Entitlements' },
)
