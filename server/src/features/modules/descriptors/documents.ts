import Type from 'typebox'
import { Nullable, Strict, Timestamp, uuidPattern } from '../../../kernel/schemas.ts'
import { defineModule, type ModuleValues, type Moment } from '../module.ts'
import { changes, has, requireOrder } from './coherence.ts'
import {
  AssetId,
  date,
  integer,
  language,
  list,
  longText,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  url,
} from './fields.ts'

const versionsMax = 100
const settled = ['approved', 'signed', 'expired']
const signed = ['signed', 'expired']

const Version = Strict({
  version: Type.Integer({ minimum: 1, description: 'Counts from 1.', examples: [1] }),
  assetId: AssetId,
  addedAt: Timestamp('When the file was added.'),
  addedBy: Nullable(
    Type.String({
      pattern: uuidPattern,
      description: 'The user who added it; null if a credential did.',
      examples: ['0199a1b2-0000-7000-8000-0000000000dd'],
    }),
  ),
})

const exampleVersion = {
  version: 1,
  assetId: '0199a1b2-0000-7000-8000-0000000000ab',
  addedAt: '2026-09-14T09:30:00.000Z',
  addedBy: '0199a1b2-0000-7000-8000-0000000000dd',
}

export const documents = defineModule({
  key: 'documents',
  label: 'Document',
  pluralLabel: 'Documents',
  description: 'Contracts, reports and other files, with their versions and their way through review and signature.',
  nameField: 'name',
  subtitleFields: ['documentType', 'folderPath', 'status'],
  fields: [
    text('name', 'Name', 'What it is called, at most 255 characters.', 'Frame contract Northwind', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    select(
      'documentType',
      'Type',
      'What it is.',
      {
        contract: 'Contract',
        proposal: 'Proposal',
        report: 'Report',
        policy: 'Policy',
        certificate: 'Certificate',
        correspondence: 'Correspondence',
        other: 'Other',
      },
      { default: 'other', indexed: true },
    ),
    state('status', 'Status', 'How far it has come.', {
      draft: 'Draft',
      inReview: 'In review',
      approved: 'Approved',
      signed: 'Signed',
      expired: 'Expired',
    }),
    longText('description', 'Description', 'What stands in it.', 'Prices and terms for 2027.', { searchable: true }),
    text('assetId', 'File', 'The asset that holds the newest version.', '0199a1b2-0000-7000-8000-0000000000ab', {
      pattern: uuidPattern.slice(1, -1),
      maxLength: 36,
      indexed: true,
      lockedIn: settled,
    }),
    integer('version', 'Version', 'Counted up with each new file; 0 without one. Set by the service.', 1, {
      readOnly: true,
    }),
    list('versions', 'Versions', 'The newest first; the oldest are dropped.', Version, versionsMax, [exampleVersion], {
      readOnly: true,
    }),
    url('url', 'Link', 'Where it is, if it is kept elsewhere.', 'https://files.example/contract'),
    text('folderPath', 'Folder', 'Where it is filed: names between slashes.', 'Contracts/2026', {
      pattern: '[^/\\p{C}]+(/[^/\\p{C}]+)*',
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    text('referenceNumber', 'Reference', 'The number that stands on it.', 'C-2026-117', {
      maxLength: 100,
      indexed: true,
      searchable: true,
    }),
    select(
      'confidentiality',
      'Confidentiality',
      'Who may know of it.',
      { public: 'Public', internal: 'Internal', confidential: 'Confidential' },
      { default: 'internal', indexed: true },
    ),
    date('effectiveOn', 'In force from', 'The first day on which it holds.', '2026-10-01', { lockedIn: signed }),
    date('expiresOn', 'In force until', 'The last day on which it holds.', '2027-09-30', {
      indexed: true,
      lockedIn: signed,
    }),
    text('signedBy', 'Signed by', 'Who signed it, at most 500 characters.', 'Ada Lovelace', {
      maxLength: 500,
      lockedIn: signed,
    }),
    stateTime('approvedAt', 'Approved at', 'When it was approved.'),
    stateTime('signedAt', 'Signed at', 'When it was signed.', { indexed: true }),
    stateTime('expiredAt', 'Expired at', 'When it went out of force.'),
    language('The language that it is written in: a BCP 47 tag.'),
    reference('contactId', 'Contact', 'Whom it concerns.', 'contacts'),
    reference('companyId', 'Company', 'The company that it concerns.', 'companies'),
    reference('dealId', 'Deal', 'The deal that it belongs to.', 'deals'),
    reference('projectId', 'Project', 'The project that it belongs to.', 'projects'),
    tags(),
  ],
  states: {
    field: 'status',
    initial: 'draft',
    transitions: {
      draft: ['inReview', 'approved'],
      inReview: ['draft', 'approved'],
      approved: ['draft', 'signed', 'expired'],
      signed: ['expired'],
    },
    createdIn: ['inReview', 'approved', 'signed', 'expired'],
    times: {
      approvedAt: { entering: settled, clearedIn: ['draft', 'inReview'] },
      signedAt: { entering: ['signed'] },
      expiredAt: { entering: ['expired'] },
    },
  },
  derive(after, before, moment) {
    requireOrder(after, 'effectiveOn', 'expiresOn')
    return versionsOf(after, before, moment)
  },
  relationships: [
    {
      relationshipKey: 'documents_related',
      label: 'Refers to',
      inverseLabel: 'Referred to by',
      to: 'documents',
      cardinality: 'many-to-many',
    },
  ],
})

/** Another file is another version. */
function versionsOf(after: ModuleValues, before: ModuleValues | undefined, moment: Moment): ModuleValues {
  const version = Number(before?.['version'] ?? 0)
  const versions = (before?.['versions'] ?? []) as readonly unknown[]
  if (!has(after, 'assetId') || !changes('assetId', after, before)) return { version, versions }
  const added = { version: version + 1, assetId: after['assetId'], addedAt: moment.now, addedBy: moment.userId }
  return { version: version + 1, versions: [added, ...versions].slice(0, versionsMax) }
}
