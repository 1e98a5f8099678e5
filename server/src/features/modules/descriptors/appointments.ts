import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import { defineModule } from '../module.ts'
import { changes, minutesBetween, requireOrder, requireTimeZone } from './coherence.ts'
import { amountsOf, currency } from './currency.ts'
import {
  dateTime,
  decimal,
  email,
  integer,
  list,
  longText,
  phone,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  timeZone,
  url,
  user,
} from './fields.ts'
import { reminders } from './reminders.ts'

const Answer = Strict({
  question: Type.String({ maxLength: 300, description: 'What was asked.', examples: ['How many people?'] }),
  answer: Type.String({ maxLength: 2000, description: 'What was answered.', examples: ['About forty'] }),
})

export const appointments = defineModule({
  key: 'appointments',
  label: 'Appointment',
  pluralLabel: 'Appointments',
  description: 'Times that somebody has booked with the organization, from the request to the visit.',
  nameField: 'title',
  subtitleFields: ['inviteeName', 'startsAt', 'place'],
  fields: [
    text('title', 'Title', 'What is booked, at most 255 characters.', 'Consultation, 30 minutes', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    state('status', 'Status', 'How far it has come.', {
      requested: 'Requested',
      confirmed: 'Confirmed',
      checkedIn: 'Checked in',
      completed: 'Completed',
      cancelled: 'Cancelled',
      noShow: 'No show',
    }),
    dateTime('startsAt', 'Starts at', 'When it begins.', '2026-09-14T09:30:00.000Z', { required: true, indexed: true }),
    dateTime('endsAt', 'Ends at', 'When it ends, after `startsAt`.', '2026-09-14T10:00:00.000Z', {
      required: true,
      indexed: true,
    }),
    integer('durationMinutes', 'Duration', 'From beginning to end, in minutes. Set by the service.', 30, {
      readOnly: true,
    }),
    timeZone('Of whoever booked it.'),
    integer('bufferBeforeMinutes', 'Buffer before', 'Minutes that stay free before it.', 10, {
      minimum: 0,
      maximum: 1440,
      default: 0,
    }),
    integer('bufferAfterMinutes', 'Buffer after', 'Minutes that stay free after it.', 10, {
      minimum: 0,
      maximum: 1440,
      default: 0,
    }),
    reference('contactId', 'Contact', 'Who booked it, where they have a record.', 'contacts'),
    text('inviteeName', 'Booked by', 'The name of who booked it.', 'Ada Lovelace', {
      maxLength: 200,
      searchable: true,
    }),
    email('inviteeEmail', 'E-mail', 'The address of who booked it.', 'ada@northwind.example', {
      indexed: true,
      searchable: true,
    }),
    phone('inviteePhone', 'Telephone', 'The number of who booked it.', '+43 1 234 56 78', { searchable: true }),
    user('hostUserId', 'Host', 'Who of the organization receives them.'),
    reference('productId', 'Product', 'The product that is booked.', 'products'),
    select(
      'meetingType',
      'Meeting',
      'How they meet.',
      { inPerson: 'In person', phone: 'By telephone', video: 'By video', other: 'Otherwise' },
      { default: 'inPerson', indexed: true },
    ),
    text('place', 'Place', 'Address or room, at most 300 characters.', 'Opernring 1, Vienna', { maxLength: 300 }),
    url('meetingUrl', 'Video conference', 'Where to join.', 'https://meet.example/consultation'),
    list(
      'answers',
      'Answers',
      'What they were asked when they booked.',
      Answer,
      30,
      [{ question: 'How many people?', answer: 'About forty' }],
      { default: [] },
    ),
    longText('notes', 'Notes', 'What else to know.', 'Needs a parking space.', { searchable: true }),
    decimal('price', 'Price', 'What it costs, in `currency`.', '80.00', { minimum: 0, scale: 4 }),
    currency(),
    reminders('the appointment'),
    integer('rescheduleCount', 'Moved', 'How often its beginning was moved. Set by the service.', 0, {
      readOnly: true,
    }),
    select('cancelledBy', 'Cancelled by', 'Who cancelled it.', { invitee: 'Who booked it', host: 'Host' }),
    text('cancellationReason', 'Reason', 'Why it was cancelled.', 'Ill', { maxLength: 500 }),
    stateTime('confirmedAt', 'Confirmed at', 'When it was confirmed.'),
    stateTime('checkedInAt', 'Checked in at', 'When they arrived.'),
    stateTime('completedAt', 'Completed at', 'When it was completed.'),
    stateTime('cancelledAt', 'Cancelled at', 'When it was cancelled.'),
    tags(),
  ],
  states: {
    field: 'status',
    initial: 'requested',
    transitions: {
      requested: ['confirmed', 'cancelled'],
      confirmed: ['checkedIn', 'completed', 'cancelled', 'noShow'],
      checkedIn: ['confirmed', 'completed'],
      noShow: ['confirmed', 'checkedIn'],
      cancelled: ['requested'],
    },
    createdIn: ['confirmed', 'checkedIn', 'completed', 'cancelled', 'noShow'],
    times: {
      confirmedAt: { entering: ['confirmed', 'checkedIn', 'completed', 'noShow'], clearedIn: ['requested'] },
      checkedInAt: { entering: ['checkedIn'], clearedIn: ['requested', 'confirmed', 'noShow'] },
      completedAt: { entering: ['completed'] },
      cancelledAt: { entering: ['cancelled'], clearedIn: ['requested'] },
    },
  },
  derive(after, before) {
    requireOrder(after, 'startsAt', 'endsAt', false)
    requireTimeZone(after)
    const moved = before !== undefined && changes('startsAt', after, before)
    return {
      durationMinutes: minutesBetween(after, 'startsAt', 'endsAt'),
      rescheduleCount: Number(before?.['rescheduleCount'] ?? 0) + (moved ? 1 : 0),
      ...amountsOf(after, 'price'),
    }
  },
  relationships: [
    {
      relationshipKey: 'appointments_calendar_events',
      label: 'In calendars',
      inverseLabel: 'Appointment',
      to: 'calendar-events',
      cardinality: 'one-to-many',
    },
  ],
})
