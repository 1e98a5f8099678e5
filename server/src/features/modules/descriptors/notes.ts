import { defineModule, type ModuleValues } from '../module.ts'
import { has } from './coherence.ts'
import { attachments, boolean, dateTime, longText, reference, select, tags, text } from './fields.ts'

const titleLengthMax = 200

export const notes = defineModule({
  key: 'notes',
  label: 'Note',
  pluralLabel: 'Notes',
  description: 'What people write down about contacts, deals and other records.',
  nameField: 'title',
  subtitleFields: ['body'],
  fields: [
    text('title', 'Title', 'What it is about; the beginning of the text unless given.', 'Call with Ada', {
      maxLength: titleLengthMax,
      indexed: true,
      searchable: true,
    }),
    longText('body', 'Text', 'The note, at most 100,000 characters.', 'Wants an offer for four machines by Friday.', {
      required: true,
      minLength: 1,
      searchable: true,
    }),
    select(
      'bodyFormat',
      'Format',
      'How the text is to be read.',
      { markdown: 'Markdown', plain: 'Plain text' },
      { default: 'markdown' },
    ),
    dateTime('notedAt', 'Noted at', 'When it was so; the time of writing unless given.', '2026-09-14T09:30:00.000Z', {
      indexed: true,
    }),
    boolean('isPinned', 'Pinned', 'Is it shown before other notes?', false, { default: false, indexed: true }),
    reference('contactId', 'Contact', 'Whom it is about.', 'contacts'),
    reference('companyId', 'Company', 'The company that it is about.', 'companies'),
    reference('leadId', 'Lead', 'The lead that it is about.', 'leads'),
    reference('dealId', 'Deal', 'The deal that it is about.', 'deals'),
    reference('ticketId', 'Ticket', 'The ticket that it is about.', 'tickets'),
    reference('projectId', 'Project', 'The project that it is about.', 'projects'),
    tags(),
    attachments(),
  ],
  derive: (after, _before, { now }) => ({
    ...(!has(after, 'notedAt') && { notedAt: now }),
    title: titleOf(after),
  }),
  relationships: [
    {
      relationshipKey: 'notes_mentions',
      label: 'Mentions',
      inverseLabel: 'Mentioned in notes',
      to: 'contacts',
      cardinality: 'many-to-many',
    },
  ],
})

/** What is given, else the first line of the text that has something on it, without marks of Markdown. */
function titleOf(values: ModuleValues): string {
  const given = String(values['title'] ?? '').trim()
  if (given !== '') return given
  const lines = String(values['body'] ?? '').split(/\r?\n/)
  const first = lines.map((line) => line.replace(/^[\s#>*-]+/, '').trim()).find((line) => line !== '')
  return [...(first ?? 'Note')].slice(0, titleLengthMax).join('')
}
