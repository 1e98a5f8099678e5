import { expect, test } from 'vitest'
import { defaultCatalog, parseBillingCatalog } from './billing-catalog.ts'

const plan = (planKey: string, metered: readonly object[] = []) => ({
  planKey,
  label: planKey,
  description: 'A plan.',
  price: { amount: '49.00', currency: 'EUR', interval: 'month' },
  metered,
})
const records = { resourceKey: 'records', included: 1000, beyond: { amount: '0.1', currency: 'EUR', per: 1000 } }

test('a catalog is read as it stands', () => {
  const catalog = { plans: [plan('free'), plan('team', [records, { ...records, resourceKey: 'storageBytes' }])] }
  expect(parseBillingCatalog(JSON.stringify(catalog))).toEqual(catalog)
  expect(parseBillingCatalog(JSON.stringify(defaultCatalog))).toEqual(defaultCatalog)
})

test.each([
  ['{', 'It is not valid JSON.'],
  ['[]', 'body: Must be object.'],
  [{ plans: [] }, 'plans: Must not have fewer than 1 items.'],
  [{ plans: [{ ...plan('free'), colour: 'red' }] }, 'plans[0].colour: There is no such field.'],
  [
    { plans: [{ ...plan('free'), price: { amount: '-1', currency: 'EUR', interval: 'month' } }] },
    'plans[0].price.amount',
  ],
  [{ plans: [plan('free', [{ ...records, resourceKey: 'horses' }])] }, 'plans[0].metered[0].resourceKey'],
  [{ plans: [plan('free'), plan('free')] }, 'It names free twice among plans.'],
  [{ plans: [plan('free', [records, records])] }, 'It names records twice among the metered resources of free.'],
  [{ plans: [plan('team')] }, 'It has no plan with the key free, which every account begins with.'],
])('%j is refused: %s', (catalog, message) => {
  expect(() => parseBillingCatalog(typeof catalog === 'string' ? catalog : JSON.stringify(catalog))).toThrow(message)
})
