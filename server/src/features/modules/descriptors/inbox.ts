import Type from 'typebox'
import { fail } from '../../../kernel/errors.ts'
import { defineModule } from '../module.ts'
import { has } from './coherence.ts'
import {
  attachments,
  boolean,
  dateTime,
  email,
  longText,
  phone,
  reference,
  select,
  state,
  stateTime,
  structure,
  tags,
  text,
  user,
} from './fields.ts'

const FormFields = Type.Record(Type.String({ maxLength: 200 }), Type.Unknown(), {
  description: 'Names and values as they were sent.',
  examples: [{ message: 'Please call me.' }],
})

export const inbox = defineModule({
  key: 'inbox',
  label: 'Inbox item',
  pluralLabel: 'Inbox',
  description: 'What reaches the organization and waits for somebody: messages, calls, submissions of forms.',
  nameField: 'subject',
  subtitleFields: ['senderName', 'senderEmail', 'channel'],
  fields: [
    text('subject', 'Subject', 'What it is about, at most 255 characters.', 'Question about delivery', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    longText('body', 'Text', 'What they wrote.', 'When will my order arrive?', { searchable: true }),
    state('status', 'Status', 'Has somebody dealt with it?', {
      open: 'Open',
      waiting: 'Waiting for an answer',
      snoozed: 'Snoozed',
      done: 'Done',
      spam: 'Spam',
    }),
    select(
      'channel',
      'Channel',
      'How it came.',
      {
        email: 'E-mail',
        form: 'Form',
        chat: 'Chat',
        phone: 'Telephone',
        sms: 'Text message',
        social: 'Social network',
        other: 'Other',
      },
      { required: true, default: 'other', indexed: true },
    ),
    dateTime(
      'receivedAt',
      'Received at',
      'When it came; the time of writing unless given.',
      '2026-09-14T09:30:00.000Z',
      {
        indexed: true,
      },
    ),
    boolean('isRead', 'Read', 'Has somebody opened it?', false, { default: false, indexed: true }),
    dateTime('readAt', 'Read at', 'When somebody first opened it. Set by the service.', '2026-09-14T09:35:00.000Z', {
      readOnly: true,
    }),
    dateTime('snoozedUntil', 'Snoozed until', 'When a snoozed item is to come back.', '2026-09-15T07:00:00.000Z', {
      indexed: true,
    }),
    select(
      'priority',
      'Priority',
      'How much it matters.',
      { low: 'Low', normal: 'Normal', high: 'High', urgent: 'Urgent' },
      { default: 'normal', indexed: true },
    ),
    user('assigneeUserId', 'Assignee', 'Who deals with it.'),
    text('senderName', 'Sender', 'The name of who sent it.', 'Ada Lovelace', { maxLength: 200, searchable: true }),
    email('senderEmail', 'Sender’s e-mail', 'The address of who sent it.', 'ada@northwind.example', {
      indexed: true,
      searchable: true,
    }),
    phone('senderPhone', 'Sender’s telephone', 'The number of who sent it.', '+43 1 234 56 78', { searchable: true }),
    reference('contactId', 'Contact', 'Who sent it, where they have a record.', 'contacts'),
    reference('companyId', 'Company', 'The company that it came from.', 'companies'),
    reference('ticketId', 'Ticket', 'The ticket that was made of it.', 'tickets'),
    reference('replyToId', 'Reply to', 'The item that it answers.', 'inbox'),
    text('messageId', 'Message id', 'What the channel calls it, e.g. RFC 5322 Message-ID; unique.', '42@mail.example', {
      unique: true,
      maxLength: 255,
    }),
    text('endpointKey', 'Form', 'The key of the form that it came by.', 'contact-us', {
      maxLength: 100,
      indexed: true,
    }),
    text('submissionId', 'Submission', 'The submission of the form; unique.', '0199a1b2-0000-7000-8000-0000000000f1', {
      unique: true,
      maxLength: 36,
    }),
    structure('formFields', 'Form fields', 'What the form held.', FormFields, { message: 'Please call me.' }),
    stateTime('doneAt', 'Done at', 'When it was done.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'open',
    transitions: {
      open: ['waiting', 'snoozed', 'done', 'spam'],
      waiting: ['open', 'snoozed', 'done', 'spam'],
      snoozed: ['open', 'waiting', 'done', 'spam'],
      done: ['open'],
      spam: ['open'],
    },
    createdIn: ['waiting', 'done', 'spam'],
    times: { doneAt: { entering: ['done'], clearedIn: ['open', 'waiting', 'snoozed', 'spam'] } },
  },
  derive(after, before, { now }) {
    if (after['status'] === 'snoozed' && !has(after, 'snoozedUntil')) {
      throw fail('required_field_missing', { field: 'snoozedUntil', message: 'Say when it is to come back.' })
    }
    const isRead = after['isRead'] === true
    return {
      ...(!has(after, 'receivedAt') && { receivedAt: now }),
      ...(isRead && !has(before ?? {}, 'readAt') && { readAt: now }),
      ...(after['status'] !== 'snoozed' && { snoozedUntil: null }),
    }
  },
  relationships: [
    {
      relationshipKey: 'inbox_tasks',
      label: 'Tasks',
      inverseLabel: 'Came from',
      to: 'tasks',
      cardinality: 'many-to-many',
    },
  ],
})
