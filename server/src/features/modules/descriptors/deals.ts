import { defineModule, type ModuleValues } from '../module.ts'
import { changes, has } from './coherence.ts'
import { amountsOf, currency, exponentOf, written } from './currency.ts'
import { Decimal } from './decimal.ts'
import { date, decimal, integer, longText, reference, select, state, stateTime, tags, text } from './fields.ts'

/** How probable a deal in a stage is while nobody knows better, in per cent. */
const probabilities: Readonly<Record<string, number>> = {
  new: 10,
  qualified: 25,
  proposal: 50,
  negotiation: 75,
  won: 100,
  lost: 0,
}
const open = ['new', 'qualified', 'proposal', 'negotiation']
const from = (stage: string) => [...open.filter((other) => other !== stage), 'won', 'lost']

export const deals = defineModule({
  key: 'deals',
  label: 'Deal',
  pluralLabel: 'Deals',
  description: 'Sales in the making, from the first talk until they are won or lost.',
  nameField: 'name',
  subtitleFields: ['pipeline', 'nextStep'],
  fields: [
    text('name', 'Name', 'What it is about, at most 200 characters.', 'Espresso machines for Northwind', {
      required: true,
      minLength: 1,
      maxLength: 200,
      indexed: true,
      searchable: true,
    }),
    text('pipeline', 'Pipeline', 'The pipeline that it runs through.', 'default', {
      default: 'default',
      maxLength: 100,
      indexed: true,
    }),
    state('stage', 'Stage', 'How far it has come.', {
      new: 'New',
      qualified: 'Qualified',
      proposal: 'Proposal',
      negotiation: 'Negotiation',
      won: 'Won',
      lost: 'Lost',
    }),
    decimal('amount', 'Amount', 'What it brings if it is won, in `currency`.', '12000.00', {
      minimum: 0,
      scale: 4,
      indexed: true,
    }),
    currency({ indexed: true }),
    integer('probability', 'Probability', 'How likely it is won, in per cent; follows the stage unless given.', 50, {
      minimum: 0,
      maximum: 100,
      indexed: true,
    }),
    decimal('weightedAmount', 'Weighted amount', 'Amount times probability. Set by the service.', '6000.00', {
      readOnly: true,
      indexed: true,
    }),
    select(
      'forecastCategory',
      'Forecast',
      'How it counts in the forecast.',
      { pipeline: 'Pipeline', bestCase: 'Best case', commit: 'Commit', omitted: 'Omitted' },
      { default: 'pipeline', indexed: true },
    ),
    date('expectedCloseOn', 'Expected to close on', 'The day by which it should be decided.', '2026-12-18', {
      indexed: true,
    }),
    stateTime('stageChangedAt', 'In this stage since', 'When it came into its stage.'),
    stateTime('closedAt', 'Closed at', 'When it was won or lost.', { indexed: true }),
    text('lostReason', 'Reason for the loss', 'Why it was lost, at most 500 characters.', 'Chose a competitor', {
      maxLength: 500,
    }),
    reference('contactId', 'Contact', 'The person to talk to.', 'contacts'),
    reference('companyId', 'Company', 'The company that buys.', 'companies'),
    reference('leadId', 'Lead', 'The lead that it came from.', 'leads'),
    select('dealType', 'Type', 'What kind of sale it is.', {
      newBusiness: 'New business',
      existingBusiness: 'Existing business',
      renewal: 'Renewal',
    }),
    select(
      'priority',
      'Priority',
      'How much it matters.',
      { low: 'Low', medium: 'Medium', high: 'High' },
      { default: 'medium', indexed: true },
    ),
    text('source', 'Source', 'How it came, at most 100 characters.', 'Referral', { maxLength: 100, indexed: true }),
    text('nextStep', 'Next step', 'What to do next, at most 500 characters.', 'Send the revised offer', {
      maxLength: 500,
    }),
    longText('description', 'Description', 'What else to know about it.', 'Four machines, delivery in January.', {
      searchable: true,
    }),
    tags(),
  ],
  states: {
    field: 'stage',
    initial: 'new',
    transitions: {
      ...Object.fromEntries(open.map((stage) => [stage, from(stage)])),
      won: ['negotiation'],
      lost: open,
    },
    createdIn: [...open.slice(1), 'won', 'lost'],
    times: { closedAt: { entering: ['won', 'lost'], clearedIn: open } },
  },
  derive(after, before, { now }) {
    const stage = String(after['stage'])
    const probability = probabilityOf(stage, after, before)
    const amounts = amountsOf(after, 'amount')
    return {
      ...amounts,
      probability,
      weightedAmount: amounts['amount'] === undefined ? null : weighted(amounts['amount'], probability, after),
      ...(stage !== before?.['stage'] && { stageChangedAt: now }),
    }
  },
  relationships: [
    {
      relationshipKey: 'deals_contacts',
      label: 'Further contacts',
      inverseLabel: 'Takes part in deals',
      to: 'contacts',
      cardinality: 'many-to-many',
    },
    {
      relationshipKey: 'deals_products',
      label: 'Products',
      inverseLabel: 'Deals',
      to: 'products',
      cardinality: 'many-to-many',
    },
  ],
})

/** Of a closed deal it is certain; of an open one it follows the stage, unless the write says another. */
function probabilityOf(stage: string, after: ModuleValues, before: ModuleValues | undefined): number {
  const usual = probabilities[stage]!
  const moved = stage !== (before?.['stage'] ?? stage)
  if (!open.includes(stage) || !has(after, 'probability')) return usual
  return moved && !changes('probability', after, before) ? usual : Number(after['probability'])
}

function weighted(amount: string, probability: number, { currency: code }: ModuleValues): string {
  return written(new Decimal(amount).times(probability).div(100), exponentOf(String(code)))
}
