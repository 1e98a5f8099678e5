import { defineModule, type ModuleValues } from '../module.ts'
import { changes, has } from './coherence.ts'
import {
  attachments,
  date,
  integer,
  language,
  longText,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  user,
} from './fields.ts'

const slugLengthMax = 100

export const knowledgeArticles = defineModule({
  key: 'knowledge-articles',
  label: 'Knowledge article',
  pluralLabel: 'Knowledge articles',
  description: 'Answers and instructions, for customers or for the team, drafted, published and archived.',
  nameField: 'title',
  subtitleFields: ['summary', 'category'],
  fields: [
    text('title', 'Title', 'The question or the subject, at most 255 characters.', 'The water stays cold', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    // Not unique: of two articles with one title the second would be refused for a field that nobody filled in.
    text(
      'slug',
      'Slug',
      'Its readable name in addresses, beside its id; made of the title unless given.',
      'the-water-stays-cold',
      {
        pattern: '[a-z0-9]+(-[a-z0-9]+)*',
        maxLength: slugLengthMax,
        indexed: true,
      },
    ),
    text('summary', 'Summary', 'The answer in a sentence or two, at most 500 characters.', 'Check the fuse first.', {
      maxLength: 500,
      searchable: true,
    }),
    longText('body', 'Text', 'The article in Markdown, at most 100,000 characters.', '## Check the fuse\n\nOpen …', {
      required: true,
      minLength: 1,
      searchable: true,
    }),
    state('status', 'Status', 'Can it be read by its audience?', {
      draft: 'Draft',
      published: 'Published',
      archived: 'Archived',
    }),
    integer('version', 'Version', 'Counts what was published; 0 before. Set by the service.', 1, { readOnly: true }),
    select(
      'audience',
      'Audience',
      'For whom it is.',
      { public: 'Everybody', customers: 'Customers', internal: 'The team' },
      { default: 'internal', indexed: true },
    ),
    text('category', 'Category', 'What it belongs to, at most 200 characters.', 'Machines / Heating', {
      maxLength: 200,
      indexed: true,
      searchable: true,
    }),
    language('The language that it is written in: a BCP 47 tag.'),
    reference(
      'translationOfId',
      'Translation of',
      'The article that it says in another language.',
      'knowledge-articles',
    ),
    user('authorUserId', 'Author', 'Who answers for it.'),
    date('reviewOn', 'Review on', 'The day on which to look whether it still holds.', '2027-03-01', { indexed: true }),
    integer('position', 'Position', 'Its place within the category; smaller comes first.', 10, {
      minimum: 0,
      maximum: 1_000_000,
      default: 0,
    }),
    integer('helpfulCount', 'Found helpful', 'How many readers said that it helped.', 12, { minimum: 0, default: 0 }),
    integer('unhelpfulCount', 'Found unhelpful', 'How many readers said that it did not.', 1, {
      minimum: 0,
      default: 0,
    }),
    text('metaDescription', 'Meta description', 'What search engines show, at most 320 characters.', 'No hot water?', {
      maxLength: 320,
    }),
    reference('productId', 'Product', 'The product that it is about.', 'products'),
    stateTime('publishedAt', 'Published at', 'When it was published, the last time.', { indexed: true }),
    stateTime('firstPublishedAt', 'First published at', 'When it was published, the first time.'),
    stateTime('retiredAt', 'Archived at', 'When it was archived.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'draft',
    transitions: {
      draft: ['published', 'archived'],
      published: ['draft', 'archived'],
      archived: ['draft', 'published'],
    },
    createdIn: ['published', 'archived'],
    times: {
      publishedAt: { entering: ['published'], clearedIn: ['draft'] },
      retiredAt: { entering: ['archived'], clearedIn: ['draft', 'published'] },
    },
  },
  derive(after, before, { now }) {
    return {
      version: versionOf(after, before),
      ...(!has(after, 'slug') && { slug: slugOf(String(after['title'])) }),
      ...(after['status'] === 'published' && !has(after, 'firstPublishedAt') && { firstPublishedAt: now }),
    }
  },
  relationships: [
    {
      relationshipKey: 'knowledge_articles_related',
      label: 'See also',
      inverseLabel: 'Referred to by',
      to: 'knowledge-articles',
      cardinality: 'many-to-many',
    },
  ],
})

/** Counted up when it is published, and when what is published changes. */
function versionOf(after: ModuleValues, before: ModuleValues | undefined): number {
  const version = Number(before?.['version'] ?? 0)
  if (after['status'] !== 'published') return version
  const changed = ['status', 'title', 'summary', 'body'].some((key) => changes(key, after, before))
  return changed ? version + 1 : version
}

/** The letters and digits of a title without accents; null where there are none that an address takes. */
function slugOf(title: string): string | null {
  const plain = title.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  const slug = plain.replaceAll(/[^a-z0-9]+/g, '-').slice(0, slugLengthMax)
  return slug.replaceAll(/^-|-$/g, '') || null
}
