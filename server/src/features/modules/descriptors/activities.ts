import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import { defineModule } from '../module.ts'
import { minutesBetween, requireOrder } from './coherence.ts'
import {
  attachments,
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
  url,
  user,
} from './fields.ts'

const Counterpart = Strict({
  name: Type.Optional(Type.String({ maxLength: 200, description: 'The name.', examples: ['Ada Lovelace'] })),
  address: Type.String({
    maxLength: 254,
    description: 'The e-mail address, telephone number or name of an account.',
    examples: ['ada@northwind.example'],
  }),
  role: Type.Enum(['from', 'to', 'cc', 'bcc', 'attendee'], { description: 'What part they had.', examples: ['to'] }),
})

export const activities = defineModule({
  key: 'activities',
  label: 'Activity',
  pluralLabel: 'Activities',
  description: 'What happened between the organization and others: calls, e-mails, meetings, messages, visits.',
  nameField: 'subject',
  subtitleFields: ['activityType', 'outcome'],
  fields: [
    text('subject', 'Subject', 'What it was about, at most 255 characters.', 'Call about the offer', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    select(
      'activityType',
      'Type',
      'What it was.',
      { call: 'Call', email: 'E-mail', meeting: 'Meeting', message: 'Message', visit: 'Visit', other: 'Other' },
      { required: true, indexed: true },
    ),
    state('status', 'Status', 'Has it taken place?', {
      planned: 'Planned',
      completed: 'Completed',
      noShow: 'No show',
      cancelled: 'Cancelled',
    }),
    select(
      'direction',
      'Direction',
      'Who turned to whom.',
      { inbound: 'Inbound', outbound: 'Outbound' },
      { indexed: true },
    ),
    select(
      'outcome',
      'Outcome',
      'What came of it.',
      {
        reached: 'Reached',
        noAnswer: 'No answer',
        busy: 'Busy',
        voicemail: 'Left a message',
        wrongNumber: 'Wrong number',
        bounced: 'Bounced',
        replied: 'Replied',
      },
      { indexed: true },
    ),
    dateTime('startsAt', 'Starts at', 'When it began or is to begin.', '2026-09-14T09:30:00.000Z', {
      required: true,
      indexed: true,
    }),
    dateTime('endsAt', 'Ends at', 'When it ended or is to end.', '2026-09-14T09:45:00.000Z'),
    integer('durationMinutes', 'Duration', 'From beginning to end, in minutes. Set by the service.', 15, {
      readOnly: true,
    }),
    longText('body', 'Text', 'What was said or written.', 'Wants an offer for four machines by Friday.', {
      searchable: true,
    }),
    list(
      'counterparts',
      'People',
      'Who took part, as addresses.',
      Counterpart,
      100,
      [{ name: 'Ada Lovelace', address: 'ada@northwind.example', role: 'to' }],
      { default: [] },
    ),
    text('place', 'Place', 'Where it was, at most 300 characters.', 'Opernring 1, Vienna', { maxLength: 300 }),
    url('recordingUrl', 'Recording', 'Where its recording is.', 'https://calls.example/r/42'),
    text('externalId', 'External id', 'What another system calls it; unique.', 'msg-42@mail.example', {
      unique: true,
      maxLength: 255,
    }),
    user('performedByUserId', 'Performed by', 'Who of the organization did it.'),
    reference('contactId', 'Contact', 'With whom.', 'contacts'),
    reference('companyId', 'Company', 'With which company.', 'companies'),
    reference('leadId', 'Lead', 'With which lead.', 'leads'),
    reference('dealId', 'Deal', 'The deal that it was about.', 'deals'),
    reference('ticketId', 'Ticket', 'The ticket that it was about.', 'tickets'),
    stateTime('completedAt', 'Completed at', 'When it was marked as completed.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'planned',
    transitions: {
      planned: ['completed', 'noShow', 'cancelled'],
      completed: ['planned'],
      noShow: ['planned', 'completed'],
      cancelled: ['planned'],
    },
    createdIn: ['completed', 'noShow', 'cancelled'],
    times: { completedAt: { entering: ['completed'], clearedIn: ['planned', 'noShow', 'cancelled'] } },
  },
  derive(after) {
    requireOrder(after, 'startsAt', 'endsAt')
    return { durationMinutes: minutesBetween(after, 'startsAt', 'endsAt') }
  },
  relationships: [
    {
      relationshipKey: 'activities_contacts',
      label: 'Further contacts',
      inverseLabel: 'Took part in',
      to: 'contacts',
      cardinality: 'many-to-many',
    },
  ],
})
