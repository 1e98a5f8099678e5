import type { FieldDocument, ModelDocument, ObjectDocument } from '../../src/shared/modelling/document.ts'

/**
 * The model of `startTestService`: the demo's two objects, `specimen` with a field of every data type, and for what roles
 * must not see, `dossier` with hidden fields of every kind that could betray them, and `vault`, an object as a whole.
 */
const field = (fieldKey: string, dataType: FieldDocument['dataType'], more: Partial<FieldDocument> = {}) => {
  return { fieldKey, label: fieldKey, dataType, ...more }
}
const object = (objectKey: string, fields: FieldDocument[]): ObjectDocument => {
  return { objectKey, label: objectKey, pluralLabel: `${objectKey}s`, nameField: fields[0]!.fieldKey, fields }
}

const company = object('company', [
  field('name', 'text', { required: true, searchable: true, indexed: true }),
  field('domain', 'text', { unique: true, searchable: true }),
  field('employees', 'integer', { indexed: true, validation: { minimum: 0 } }),
  field('country', 'text'),
])

const deal = object('deal', [
  field('name', 'text', { required: true, searchable: true, indexed: true }),
  field('stage', 'select', {
    indexed: true,
    options: ['open', 'won', 'lost'].map((value) => ({ value, label: value.toUpperCase() })),
  }),
  field('amount', 'decimal', { indexed: true }),
  field('probability', 'float', { validation: { minimum: 0, maximum: 1 } }),
  field('closeDate', 'date', { indexed: true }),
  field('company', 'reference', { references: 'company' }),
  field('notes', 'longText'),
])

const specimen = object('specimen', [
  field('title', 'text', { required: true, searchable: true }),
  field('code', 'text', { unique: true, validation: { pattern: '[A-Za-z]+-[0-9]+', minLength: 3, maxLength: 20 } }),
  field('body', 'longText', { searchable: true }),
  field('count', 'integer', { indexed: true }),
  field('small', 'integer', { validation: { minimum: -5, maximum: 5 } }),
  field('ratio', 'float'),
  field('price', 'decimal', { unique: true }),
  field('cents', 'decimal', { validation: { scale: 2, minimum: 0 } }),
  field('flag', 'boolean'),
  field('day', 'date'),
  field('moment', 'dateTime'),
  field('colour', 'select', {
    searchable: true,
    options: [
      { value: 'red', label: 'Crimson' },
      { value: 'grün', label: 'Green "leaf", {x}' },
    ],
  }),
  field('tags', 'multiSelect', {
    options: ['one', 'two', 'a,"b"', 'NULL', '{}'].map((value) => ({ value, label: value })),
  }),
  field('email', 'email', { unique: true }),
  field('phone', 'phone'),
  field('site', 'url', { indexed: true }),
  field('data', 'json'),
  field('assignee', 'user'),
  field('company', 'reference', { references: 'company' }),
  // Names that JavaScript objects have too, and that the model allows.
  field('toString', 'text'),
  field('number', 'autoNumber'),
])

export const hiddenFields = [
  'hiddenName',
  'hiddenWords',
  'hiddenCode',
  'hiddenLink',
  'hiddenSum',
  'hiddenChoice',
] as const

const dossier = object('dossier', [
  field('hiddenName', 'text', { searchable: true, indexed: true }),
  field('title', 'text', { searchable: true }),
  field('hiddenWords', 'longText', { searchable: true }),
  field('hiddenCode', 'text', { unique: true }),
  field('hiddenLink', 'reference', { references: 'company' }),
  field('hiddenSum', 'decimal', { indexed: true }),
  field('hiddenChoice', 'select', { searchable: true, options: [{ value: 'hiddenPick', label: 'hiddenLabel' }] }),
  field('remark', 'text', { unique: true }),
  field('company', 'reference', { references: 'company' }),
  field('vaultLink', 'reference', { references: 'vault' }),
])

const vault = object('vault', [field('name', 'text', { required: true, searchable: true }), field('depth', 'integer')])

const full = { read: true, create: true, update: true, archive: true }
const hidden = Object.fromEntries(hiddenFields.map((key) => [key, { read: false, write: false }]))

export const testModel: ModelDocument = {
  objects: [company, deal, specimen, vault, dossier],
  relationships: {
    partners: {
      label: 'Partners',
      inverseLabel: 'Deals as a partner',
      cardinality: 'many-to-many',
      from: 'deal',
      to: 'company',
      deleteRule: 'unlink',
    },
  },
  roles: {
    sales: { label: 'Sales', objects: { company: full, deal: full, specimen: full, dossier: full, vault: full } },
    support: {
      label: 'Support',
      objects: {
        company: { read: true },
        deal: { read: true, fields: { amount: { read: false, write: false } } },
        specimen: { read: true },
        dossier: { read: true, fields: hidden },
      },
    },
    // Writes where it does not see everything.
    clerk: {
      label: 'Clerk',
      objects: {
        company: { read: true, create: true, update: true, fields: { employees: { read: true, write: false } } },
        deal: { ...full, fields: { amount: { read: false, write: false } } },
        dossier: { ...full, fields: hidden },
      },
    },
  },
}

/** The model of the other application: the same, and an object that the first one does not have. */
export const otherModel: ModelDocument = {
  ...testModel,
  objects: [...testModel.objects, object('gadget', [field('name', 'text')])],
}
