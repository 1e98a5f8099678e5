import Type, { type Static } from 'typebox'
import { Failure } from '../kernel/errors.ts'
import { Nullable, Strict } from '../kernel/schemas.ts'
import { assertValid } from '../kernel/validation.ts'
import { resourceKeys } from './usage/resources.ts'

/** What accounts can subscribe to: configuration of who runs the service, shown to builders and enforced nowhere. */
const amount = Type.String({
  pattern: '^\\d{1,9}(\\.\\d{1,4})?$',
  description: 'A decimal number.',
  examples: ['49.00'],
})
const currency = Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217.', examples: ['EUR'] })
const text = (maxLength: number, description: string, example: string) =>
  Type.String({ minLength: 1, maxLength, description, examples: [example] })

const MeteredPrice = Strict({
  resourceKey: Type.Enum([...resourceKeys], { description: 'What is metered.', examples: ['records'] }),
  included: Nullable(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'How much the price of the plan includes; null: any amount.',
      examples: [100_000],
    }),
  ),
  beyond: Nullable(
    Strict(
      {
        amount,
        currency,
        per: Type.Integer({
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'So many units cost that.',
          examples: [1000],
        }),
      },
      { description: 'What more of it costs; null: it costs nothing.' },
    ),
  ),
})

export const Plan = Strict(
  {
    planKey: Type.String({
      pattern: '^[a-z][a-z0-9-]{0,49}$',
      description: 'The stable key of the plan.',
      examples: ['free'],
    }),
    label: text(100, 'What people call it.', 'Self-hosted'),
    description: text(1000, 'Who it is for and what it holds.', 'Everything, on your own servers.'),
    price: Nullable(
      Strict(
        {
          amount,
          currency,
          interval: Type.Enum(['month', 'year'], { description: 'How often it is due.', examples: ['month'] }),
        },
        { description: 'What it costs; null: nothing.' },
      ),
    ),
    metered: Type.Array(MeteredPrice, {
      maxItems: resourceKeys.length,
      description: 'What it says of metered resources; those that it does not name are not limited.',
    }),
  },
  { title: 'Plan' },
)

const Catalog = Strict({ plans: Type.Array(Plan, { minItems: 1, maxItems: 50 }) })

export type BillingCatalog = Static<typeof Catalog>

/** Every account begins with the plan of this key (migration 0004). */
const firstPlanKey = 'free'

/** What holds where nothing is configured: the software itself asks for no money. */
export const defaultCatalog: BillingCatalog = {
  plans: [
    {
      planKey: firstPlanKey,
      label: 'Self-hosted',
      description: 'Everything that the service does, as much of it as its servers hold.',
      price: null,
      metered: [],
    },
  ],
}

/** Reads a catalog from JSON. Throws an Error with words for people, naming the position to correct. */
export function parseBillingCatalog(json: string): BillingCatalog {
  let catalog: BillingCatalog
  try {
    catalog = JSON.parse(json)
    assertValid(Catalog, catalog)
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error('It is not valid JSON.')
    if (!(error instanceof Failure)) throw error
    throw new Error((error.details ?? []).map(({ field, message }) => `${field}: ${message}`).join(' '))
  }
  const keys = catalog.plans.map((plan) => plan.planKey)
  requireUnique(keys, 'plans')
  for (const { planKey, metered } of catalog.plans) {
    requireUnique(
      metered.map((one) => one.resourceKey),
      `the metered resources of ${planKey}`,
    )
  }
  if (!keys.includes(firstPlanKey)) {
    throw new Error(`It has no plan with the key ${firstPlanKey}, which every account begins with.`)
  }
  return catalog
}

function requireUnique(keys: readonly string[], where: string): void {
  const twice = keys.find((key, at) => keys.indexOf(key) !== at)
  if (twice !== undefined) throw new Error(`It names ${twice} twice among ${where}.`)
}
