import Type from 'typebox'
import { Nullable, Strict, Timestamp, uuidPattern } from '../../../kernel/schemas.ts'
import { EmailAddress } from '../../../shared/identity/person-schemas.ts'
import { defineModule, type ModuleValues } from '../module.ts'
import { changes, requireOrder, requireTimeZone } from './coherence.ts'
import {
  attachments,
  boolean,
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
  timeZone,
  url,
  user,
} from './fields.ts'
import { recurrence, requireRecurrence } from './recurrence.ts'
import { reminders } from './reminders.ts'

const recordId = (description: string) =>
  Type.Optional(
    Nullable(
      Type.String({
        format: 'uuid',
        pattern: uuidPattern,
        description,
        examples: ['0199a1b2-0000-7000-8000-0000000000ab'],
      }),
    ),
  )

const Attendee = Strict({
  email: EmailAddress('Where the invitation goes.'),
  name: Type.Optional(Type.String({ maxLength: 200, description: 'The name.', examples: ['Ada Lovelace'] })),
  contactId: recordId('The contact, where it has a record.'),
  userId: recordId('The user of the organization, where it is one.'),
  role: Type.Optional(
    Type.Enum(['required', 'optional', 'resource'], {
      description: 'Must they be there? A resource is a room or a device. Required if absent.',
      examples: ['required'],
    }),
  ),
  response: Type.Optional(
    Type.Enum(['needsAction', 'accepted', 'tentative', 'declined'], {
      description: 'What they answered; needsAction if absent.',
      examples: ['accepted'],
    }),
  ),
})

export const calendarEvents = defineModule({
  key: 'calendar-events',
  label: 'Calendar event',
  pluralLabel: 'Calendar events',
  description: 'Meetings and other times in calendars, once or recurring, after iCalendar (RFC 5545).',
  nameField: 'title',
  subtitleFields: ['place', 'startsAt'],
  fields: [
    text('title', 'Title', 'What it is, at most 255 characters.', 'Presentation at Northwind', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    longText('description', 'Description', 'What it is about.', 'We show the new machines.', { searchable: true }),
    state('status', 'Status', 'Does it take place?', {
      confirmed: 'Confirmed',
      tentative: 'Tentative',
      cancelled: 'Cancelled',
    }),
    dateTime('startsAt', 'Starts at', 'When it begins; of an all-day event, midnight.', '2026-09-14T09:30:00.000Z', {
      required: true,
      indexed: true,
    }),
    dateTime(
      'endsAt',
      'Ends at',
      'When it ends, after `startsAt`; that instant excluded.',
      '2026-09-14T10:30:00.000Z',
      {
        required: true,
        indexed: true,
      },
    ),
    boolean('isAllDay', 'All day', 'Does it take whole days?', false, { default: false }),
    timeZone('Where it takes place: in which its recurrences are counted.'),
    recurrence('When it comes again, counted from `startsAt`.'),
    list(
      'recurrenceExceptions',
      'Exceptions',
      'Beginnings of recurrences that do not take place.',
      Timestamp('The beginning of one.'),
      366,
      ['2026-09-21T09:30:00.000Z'],
      { default: [] },
    ),
    text('place', 'Place', 'Where it is, at most 500 characters.', 'Opernring 1, Vienna', {
      maxLength: 500,
      searchable: true,
    }),
    url('conferenceUrl', 'Video conference', 'Where to join from afar.', 'https://meet.example/northwind'),
    user('organizerUserId', 'Organizer', 'The user who invites.'),
    list(
      'attendees',
      'Attendees',
      'Who is invited, each address once.',
      Attendee,
      200,
      [{ email: 'ada@northwind.example', name: 'Ada Lovelace', role: 'required', response: 'accepted' }],
      { default: [] },
    ),
    reminders('the event'),
    select('showAs', 'Show as', 'Is the time taken?', { busy: 'Busy', free: 'Free' }, { default: 'busy' }),
    select(
      'privacy',
      'Privacy',
      'Whether calendars show what it is, or only that there is something.',
      { normal: 'As the calendar', public: 'Public', private: 'Private' },
      { default: 'normal' },
    ),
    text('iCalUid', 'iCalendar UID', 'What other calendars call it (RFC 5545 UID).', '7kd9s@calendar.example', {
      maxLength: 255,
      indexed: true,
    }),
    integer('sequence', 'Sequence', 'How often its time, place or status changed. Set by the service.', 0, {
      readOnly: true,
    }),
    reference('contactId', 'Contact', 'Whom it concerns.', 'contacts'),
    reference('companyId', 'Company', 'The company that it concerns.', 'companies'),
    reference('dealId', 'Deal', 'The deal that it is about.', 'deals'),
    reference('projectId', 'Project', 'The project that it belongs to.', 'projects'),
    stateTime('cancelledAt', 'Cancelled at', 'When it was cancelled.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'confirmed',
    transitions: {
      confirmed: ['tentative', 'cancelled'],
      tentative: ['confirmed', 'cancelled'],
      cancelled: ['confirmed', 'tentative'],
    },
    createdIn: ['tentative', 'cancelled'],
    times: { cancelledAt: { entering: ['cancelled'], clearedIn: ['confirmed', 'tentative'] } },
  },
  derive(after, before) {
    requireOrder(after, 'startsAt', 'endsAt', false)
    requireTimeZone(after)
    requireRecurrence(after)
    return { sequence: sequenceOf(after, before) }
  },
  relationships: [
    {
      relationshipKey: 'calendar_events_contacts',
      label: 'Attending contacts',
      inverseLabel: 'Calendar events',
      to: 'contacts',
      cardinality: 'many-to-many',
    },
  ],
})

/** RFC 5545, 3.8.7.4: counted up by every significant change, so that calendars know the newest version. */
function sequenceOf(after: ModuleValues, before: ModuleValues | undefined): number {
  if (!before) return 0
  const significant = ['startsAt', 'endsAt', 'recurrence', 'place', 'status']
  return Number(before['sequence'] ?? 0) + (significant.some((key) => changes(key, after, before)) ? 1 : 0)
}
