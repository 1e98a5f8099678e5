import Type, { type TSchema } from 'typebox'
import { Strict, uuidPattern } from '../../../kernel/schemas.ts'
import type { DataTypeKey } from '../../../shared/catalogue/data-types.ts'
import type { ModuleField } from '../module.ts'

/** Words for the fields of a descriptor: one for each data type, and the fields that many modules have. */
type More = Partial<Omit<ModuleField, 'fieldKey' | 'label' | 'description' | 'dataType' | 'example'>>

function fieldOf(dataType: DataTypeKey) {
  return (fieldKey: string, label: string, description: string, example: unknown, more: More = {}): ModuleField => ({
    fieldKey,
    label,
    description,
    dataType,
    example,
    ...more,
  })
}

/** One line of at most 2,000 characters; 255 where it is indexed or unique. */
export const text = fieldOf('text')
export const longText = fieldOf('longText')
export const integer = fieldOf('integer')
export const decimal = fieldOf('decimal')
export const boolean = fieldOf('boolean')
export const date = fieldOf('date')
export const dateTime = fieldOf('dateTime')
export const email = fieldOf('email')
export const phone = fieldOf('phone')
export const url = fieldOf('url')
const json = fieldOf('json')

const exampleId = '0199a1b2-0000-7000-8000-0000000000ab'

/** One of `options`: the stored values with what people see. */
export function select(
  fieldKey: string,
  label: string,
  description: string,
  options: Readonly<Record<string, string>>,
  more: More & { readonly example?: string } = {},
): ModuleField {
  const { example = more.default ?? Object.keys(options)[0], ...rest } = more
  return {
    ...fieldOf('select')(fieldKey, label, description, example, rest),
    options: Object.entries(options).map(([value, optionLabel]) => ({ value, label: optionLabel })),
  }
}

/** The field of a module's states; what it is while nobody says otherwise is the first of them. */
export function state(
  fieldKey: string,
  label: string,
  description: string,
  options: Readonly<Record<string, string>>,
): ModuleField {
  return select(fieldKey, label, description, options, { default: Object.keys(options)[0], indexed: true })
}

/** A time that the service sets when the record comes into a state. */
export function stateTime(fieldKey: string, label: string, description: string, more: More = {}): ModuleField {
  return dateTime(fieldKey, label, `${description} Set by the service.`, '2026-09-14T09:30:00.000Z', {
    readOnly: true,
    ...more,
  })
}

/** The record of another module; indexed, because "all invoices of this contact" is what it is asked for. */
export function reference(
  fieldKey: string,
  label: string,
  description: string,
  references: string,
  more: More = {},
): ModuleField {
  return fieldOf('reference')(fieldKey, label, description, exampleId, { references, indexed: true, ...more })
}

/** A user of the organization. */
export function user(fieldKey: string, label: string, description: string, more: More = {}): ModuleField {
  return fieldOf('user')(fieldKey, label, description, '0199a1b2-0000-7000-8000-0000000000dd', {
    indexed: true,
    ...more,
  })
}

/** The number that the service gives to each record, counted from 1 within the organization. */
export function autoNumber(description: string): ModuleField {
  return fieldOf('autoNumber')('number', 'Number', `${description} Counted up by the service.`, 1001, {
    readOnly: true,
    indexed: true,
  })
}

/** A list of objects or texts, kept in the order in which it was sent. */
export function list(
  fieldKey: string,
  label: string,
  description: string,
  item: TSchema,
  maxItems: number,
  example: readonly unknown[],
  more: More = {},
): ModuleField {
  const schema = Type.Array(item, { maxItems, description, examples: [example] })
  return json(fieldKey, label, `${description} At most ${maxItems}.`, example, { schema, ...more })
}

/** One object. */
export function structure(
  fieldKey: string,
  label: string,
  description: string,
  schema: TSchema,
  example: object,
  more: More = {},
): ModuleField {
  return json(fieldKey, label, description, example, { schema, ...more })
}

/** A decimal on the wire inside of a list: text, exact. */
export function DecimalText(description: string, example: string, whole: number, fraction: number, signed = false) {
  const pattern = `^${signed ? '-?' : ''}\\d{1,${whole}}(\\.\\d{1,${fraction}})?$`
  return Type.String({ pattern, description, examples: [example] })
}

export const AssetId = Type.String({
  format: 'uuid',
  pattern: uuidPattern,
  description: 'The asset that holds the file.',
  examples: [exampleId],
})

export function tags(): ModuleField {
  const tag = Type.String({ minLength: 1, maxLength: 50, description: 'A tag.', examples: ['priority'] })
  return list('tags', 'Tags', 'Free labels, each of 1 to 50 characters.', tag, 50, ['priority'], { default: [] })
}

export function attachments(more: More = {}): ModuleField {
  const attachment = Strict({
    assetId: AssetId,
    name: Type.Optional(
      Type.String({ maxLength: 255, description: 'What people call the file.', examples: ['offer.pdf'] }),
    ),
  })
  return list(
    'attachments',
    'Attachments',
    'Files among the assets of the organization.',
    attachment,
    50,
    [{ assetId: exampleId, name: 'offer.pdf' }],
    { default: [], ...more },
  )
}

export function language(description = 'The language to use: a BCP 47 tag.'): ModuleField {
  return text('language', 'Language', description, 'de-AT', {
    pattern: '[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,4}',
    maxLength: 35,
  })
}

export function timeZone(description: string): ModuleField {
  return text('timeZone', 'Time zone', `${description} A name of the IANA database.`, 'Europe/Vienna', {
    maxLength: 64,
  })
}
