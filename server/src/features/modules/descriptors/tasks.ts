import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import { defineModule } from '../module.ts'
import { requireOrder } from './coherence.ts'
import {
  attachments,
  autoNumber,
  dateTime,
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
import { recurrence, requireRecurrence } from './recurrence.ts'
import { reminders } from './reminders.ts'

const open = ['todo', 'inProgress', 'inReview']

const ChecklistItem = Strict({
  text: Type.String({ minLength: 1, maxLength: 300, description: 'What to do.', examples: ['Ask for the plan'] }),
  isDone: Type.Boolean({ description: 'Is it done?', examples: [false] }),
})

export const tasks = defineModule({
  key: 'tasks',
  label: 'Task',
  pluralLabel: 'Tasks',
  description: 'Things that somebody has to do, alone or within a project.',
  nameField: 'title',
  subtitleFields: ['number', 'status'],
  fields: [
    autoNumber('What people call the task by.'),
    text('title', 'Title', 'What to do, at most 255 characters.', 'Send the revised offer', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    longText('description', 'Description', 'What it takes, in Markdown.', 'With the discount that we talked about.', {
      searchable: true,
    }),
    state('status', 'Status', 'How far it has come.', {
      todo: 'To do',
      inProgress: 'In progress',
      inReview: 'In review',
      done: 'Done',
      cancelled: 'Cancelled',
    }),
    select(
      'priority',
      'Priority',
      'How much it matters.',
      { none: 'None', low: 'Low', medium: 'Medium', high: 'High', urgent: 'Urgent' },
      { default: 'none', indexed: true },
    ),
    user('assigneeUserId', 'Assignee', 'Who does it.'),
    dateTime('startsAt', 'Starts at', 'When to begin.', '2026-09-14T09:00:00.000Z', { indexed: true }),
    dateTime('dueAt', 'Due at', 'By when it must be done; not before `startsAt`.', '2026-09-18T15:00:00.000Z', {
      indexed: true,
    }),
    integer('estimateMinutes', 'Estimate', 'How long it should take, in minutes.', 90, {
      minimum: 0,
      maximum: 600_000,
    }),
    integer('spentMinutes', 'Time spent', 'How long it has taken, in minutes.', 45, { minimum: 0, maximum: 600_000 }),
    stateTime('startedAt', 'Started at', 'When it was first in progress.'),
    stateTime('completedAt', 'Completed at', 'When it was done.', { indexed: true }),
    stateTime('cancelledAt', 'Cancelled at', 'When it was cancelled.'),
    list(
      'checklist',
      'Checklist',
      'Steps to tick off.',
      ChecklistItem,
      100,
      [{ text: 'Ask for the plan', isDone: false }],
      { default: [] },
    ),
    reminders('the task, before it is due'),
    recurrence('When the task comes again.'),
    reference('parentTaskId', 'Parent task', 'The task that it is a part of.', 'tasks'),
    reference('projectId', 'Project', 'The project that it belongs to.', 'projects'),
    reference('contactId', 'Contact', 'Whom it concerns.', 'contacts'),
    reference('companyId', 'Company', 'The company that it concerns.', 'companies'),
    reference('dealId', 'Deal', 'The deal that it is for.', 'deals'),
    reference('ticketId', 'Ticket', 'The ticket that it is for.', 'tickets'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'todo',
    transitions: {
      todo: ['inProgress', 'inReview', 'done', 'cancelled'],
      inProgress: ['todo', 'inReview', 'done', 'cancelled'],
      inReview: ['todo', 'inProgress', 'done', 'cancelled'],
      done: ['todo', 'inProgress', 'inReview'],
      cancelled: ['todo', 'inProgress'],
    },
    createdIn: ['inProgress', 'inReview', 'done', 'cancelled'],
    times: {
      startedAt: { entering: ['inProgress', 'inReview'], clearedIn: ['todo'] },
      completedAt: { entering: ['done'], clearedIn: [...open, 'cancelled'] },
      cancelledAt: { entering: ['cancelled'], clearedIn: [...open, 'done'] },
    },
  },
  derive(after) {
    requireOrder(after, 'startsAt', 'dueAt')
    requireRecurrence(after)
    return {}
  },
  relationships: [
    {
      relationshipKey: 'tasks_blocks',
      label: 'Blocks',
      inverseLabel: 'Blocked by',
      to: 'tasks',
      cardinality: 'many-to-many',
    },
  ],
})
