import { defineModule } from '../module.ts'
import {
  attachments,
  autoNumber,
  dateTime,
  email,
  integer,
  longText,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  user,
} from './fields.ts'

const working = ['new', 'open', 'pending', 'onHold']
const closed = ['closed']

export const tickets = defineModule({
  key: 'tickets',
  label: 'Ticket',
  pluralLabel: 'Tickets',
  description: 'Requests for help, from the first message until they are solved. A closed ticket is final.',
  nameField: 'subject',
  subtitleFields: ['number', 'requesterEmail', 'status'],
  fields: [
    autoNumber('What people call the ticket by.'),
    text('subject', 'Subject', 'What it is about, at most 255 characters.', 'Machine does not heat', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
      lockedIn: closed,
    }),
    longText('description', 'Description', 'The request.', 'Since Monday the water stays cold.', {
      searchable: true,
      lockedIn: closed,
    }),
    state('status', 'Status', 'Who has to act: us (open), the requester (pending), others (on hold).', {
      new: 'New',
      open: 'Open',
      pending: 'Pending',
      onHold: 'On hold',
      solved: 'Solved',
      closed: 'Closed',
    }),
    select(
      'priority',
      'Priority',
      'How much it matters.',
      { low: 'Low', normal: 'Normal', high: 'High', urgent: 'Urgent' },
      { default: 'normal', indexed: true, lockedIn: closed },
    ),
    select(
      'ticketType',
      'Type',
      'What kind of request it is.',
      { question: 'Question', incident: 'Incident', problem: 'Problem', task: 'Task' },
      { indexed: true, lockedIn: closed },
    ),
    select(
      'channel',
      'Channel',
      'How it came.',
      {
        email: 'E-mail',
        form: 'Form',
        phone: 'Telephone',
        chat: 'Chat',
        social: 'Social network',
        api: 'API',
        other: 'Other',
      },
      { default: 'other', indexed: true },
    ),
    text('category', 'Category', 'What it concerns, at most 100 characters.', 'Repairs', {
      maxLength: 100,
      indexed: true,
    }),
    reference('contactId', 'Requester', 'Who asks for help.', 'contacts'),
    email('requesterEmail', 'Requester’s e-mail', 'Where answers go.', 'ada@northwind.example', {
      indexed: true,
      searchable: true,
    }),
    reference('companyId', 'Company', 'The company of who asks.', 'companies'),
    user('assigneeUserId', 'Assignee', 'Who deals with it.'),
    text('team', 'Team', 'The team that deals with it, at most 100 characters.', 'Workshop', {
      maxLength: 100,
      indexed: true,
    }),
    dateTime('dueAt', 'Due at', 'By when it must be solved.', '2026-09-18T15:00:00.000Z', { indexed: true }),
    dateTime('firstRepliedAt', 'First reply at', 'When the requester was first answered.', '2026-09-14T10:05:00.000Z'),
    stateTime('openedAt', 'Opened at', 'When somebody first took it up.'),
    stateTime('solvedAt', 'Solved at', 'When it was solved, the last time.', { indexed: true }),
    stateTime('closedAt', 'Closed at', 'When it was closed.'),
    integer('reopenCount', 'Reopened', 'How often it was reopened after it was solved. Set by the service.', 0, {
      readOnly: true,
    }),
    longText('resolution', 'Resolution', 'What helped.', 'The heating element was replaced.', {
      searchable: true,
      lockedIn: closed,
    }),
    select(
      'satisfaction',
      'Satisfaction',
      'What the requester says of the help.',
      { offered: 'Asked', good: 'Good', bad: 'Bad' },
      { indexed: true },
    ),
    text('satisfactionComment', 'Comment', 'The requester’s words on that.', 'Quick and friendly', { maxLength: 2000 }),
    reference('problemId', 'Problem', 'The problem that this incident is a case of.', 'tickets'),
    reference('productId', 'Product', 'The product that it concerns.', 'products'),
    reference('orderId', 'Order', 'The order that it concerns.', 'orders'),
    tags(),
    attachments({ lockedIn: closed }),
  ],
  states: {
    field: 'status',
    initial: 'new',
    transitions: {
      new: ['open', 'pending', 'onHold', 'solved'],
      open: ['pending', 'onHold', 'solved'],
      pending: ['open', 'onHold', 'solved'],
      onHold: ['open', 'pending', 'solved'],
      solved: ['open', 'pending', 'onHold', 'closed'],
    },
    createdIn: ['open', 'pending', 'onHold', 'solved', 'closed'],
    times: {
      openedAt: { entering: ['open', 'pending', 'onHold', 'solved', 'closed'] },
      solvedAt: { entering: ['solved', 'closed'], clearedIn: working },
      closedAt: { entering: closed },
    },
  },
  derive(after, before) {
    const reopened = before?.['status'] === 'solved' && working.includes(String(after['status']))
    return { reopenCount: Number(before?.['reopenCount'] ?? 0) + (reopened ? 1 : 0) }
  },
  relationships: [
    {
      relationshipKey: 'tickets_follow_ups',
      label: 'Follow-ups',
      inverseLabel: 'Follows',
      to: 'tickets',
      cardinality: 'one-to-many',
    },
    {
      relationshipKey: 'tickets_articles',
      label: 'Helpful articles',
      inverseLabel: 'Used in tickets',
      to: 'knowledge-articles',
      cardinality: 'many-to-many',
    },
  ],
})
