import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import { defineModule } from '../module.ts'
import { requireOrder } from './coherence.ts'
import { amountsOf, currency } from './currency.ts'
import {
  attachments,
  boolean,
  date,
  decimal,
  integer,
  list,
  longText,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  user,
} from './fields.ts'

const Milestone = Strict({
  name: Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'What is reached.',
    examples: ['Machines delivered'],
  }),
  dueOn: Type.Optional(Type.String({ format: 'date', description: 'By which day.', examples: ['2026-11-30'] })),
  isReached: Type.Boolean({ description: 'Has it been reached?', examples: [false] }),
})

export const projects = defineModule({
  key: 'projects',
  label: 'Project',
  pluralLabel: 'Projects',
  description: 'Undertakings with an aim, a time and a budget, made of tasks.',
  nameField: 'name',
  subtitleFields: ['projectKey', 'status', 'health'],
  fields: [
    text('name', 'Name', 'What it is called, at most 200 characters.', 'New coffee bar at Northwind', {
      required: true,
      minLength: 1,
      maxLength: 200,
      indexed: true,
      searchable: true,
    }),
    text('projectKey', 'Key', 'What people call it for short: 2 to 10 capitals and digits; unique.', 'BAR', {
      pattern: '[A-Z][A-Z0-9]{1,9}',
      maxLength: 10,
      unique: true,
      searchable: true,
    }),
    longText('description', 'Description', 'What it is to bring, in Markdown.', 'A bar for forty guests.', {
      searchable: true,
    }),
    state('status', 'Status', 'How far it has come.', {
      planned: 'Planned',
      active: 'Active',
      paused: 'Paused',
      completed: 'Completed',
      cancelled: 'Cancelled',
    }),
    select(
      'health',
      'Health',
      'Will it reach its aim?',
      { onTrack: 'On track', atRisk: 'At risk', offTrack: 'Off track' },
      { indexed: true },
    ),
    text('healthNote', 'Report', 'Why so, at most 1,000 characters.', 'Delivery is a week late.', { maxLength: 1000 }),
    select(
      'priority',
      'Priority',
      'How much it matters.',
      { none: 'None', low: 'Low', medium: 'Medium', high: 'High', urgent: 'Urgent' },
      { default: 'none', indexed: true },
    ),
    user('leadUserId', 'Lead', 'Who answers for it.'),
    date('startOn', 'Starts on', 'The first day.', '2026-09-14', { indexed: true }),
    date('dueOn', 'Due on', 'The last day; not before `startOn`.', '2026-12-18', { indexed: true }),
    integer('progressPercent', 'Progress', 'How much is done, in per cent; 100 of a completed one.', 40, {
      minimum: 0,
      maximum: 100,
      default: 0,
    }),
    decimal('estimateHours', 'Estimate', 'How much work it takes, in hours.', '320', { minimum: 0, scale: 2 }),
    decimal('budget', 'Budget', 'What it may cost, in `currency`.', '24000.00', {
      minimum: 0,
      scale: 4,
      indexed: true,
    }),
    currency(),
    boolean('isBillable', 'Billable', 'Is its work charged to a customer?', true, { default: false, indexed: true }),
    list(
      'milestones',
      'Milestones',
      'What is to be reached by when.',
      Milestone,
      100,
      [{ name: 'Machines delivered', dueOn: '2026-11-30', isReached: false }],
      { default: [] },
    ),
    reference('contactId', 'Contact', 'Whom it is for.', 'contacts'),
    reference('companyId', 'Company', 'The company that it is for.', 'companies'),
    reference('dealId', 'Deal', 'The deal that it came from.', 'deals'),
    reference('parentProjectId', 'Part of', 'The project that it is a part of.', 'projects'),
    stateTime('startedAt', 'Started at', 'When it was first active.'),
    stateTime('completedAt', 'Completed at', 'When it was completed.', { indexed: true }),
    stateTime('cancelledAt', 'Cancelled at', 'When it was cancelled.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'planned',
    transitions: {
      planned: ['active', 'cancelled'],
      active: ['planned', 'paused', 'completed', 'cancelled'],
      paused: ['active', 'completed', 'cancelled'],
      completed: ['active'],
      cancelled: ['planned', 'active'],
    },
    createdIn: ['active', 'paused', 'completed', 'cancelled'],
    times: {
      startedAt: { entering: ['active', 'paused', 'completed'], clearedIn: ['planned'] },
      completedAt: { entering: ['completed'], clearedIn: ['active'] },
      cancelledAt: { entering: ['cancelled'], clearedIn: ['planned', 'active'] },
    },
  },
  derive(after) {
    requireOrder(after, 'startOn', 'dueOn')
    return {
      ...amountsOf(after, 'budget'),
      ...(after['status'] === 'completed' && { progressPercent: 100 }),
    }
  },
  relationships: [
    {
      relationshipKey: 'projects_contacts',
      label: 'Stakeholders',
      inverseLabel: 'Takes part in projects',
      to: 'contacts',
      cardinality: 'many-to-many',
    },
    {
      relationshipKey: 'projects_invoices',
      label: 'Invoices',
      inverseLabel: 'Billed projects',
      to: 'invoices',
      cardinality: 'many-to-many',
    },
  ],
})
