import parsePhoneNumber from 'libphonenumber-js'
import Type from 'typebox'
import { fail } from '../../../kernel/errors.ts'
import { Strict } from '../../../kernel/schemas.ts'
import { EmailAddress } from '../../../shared/identity/person-schemas.ts'
import type { ModuleField, ModuleValues } from '../module.ts'
import { email, list, phone } from './fields.ts'

/** How somebody is reached: lists of e-mail addresses and telephone numbers, of which one each is the primary. */
export interface Email {
  readonly address: string
  readonly label?: string
  readonly isPrimary?: boolean
}

export interface Phone {
  readonly number: string
  readonly e164?: string | null
  readonly label?: string
  readonly isPrimary?: boolean
}

const label = (example: string) =>
  Type.Optional(Type.String({ maxLength: 50, description: 'What it is for.', examples: [example] }))
const isPrimary = Type.Optional(
  Type.Boolean({
    description: 'Is it the one to use? Exactly one is: the first that is marked so, else the first.',
    examples: [true],
  }),
)

const EmailEntry = Strict({
  address: EmailAddress('The address, as it was written.'),
  label: label('work'),
  isPrimary,
})

const PhoneEntry = Strict({
  number: Type.String({
    maxLength: 40,
    pattern: '^\\+?[ ().\\-/]*([0-9][ ().\\-/]*){3,}(([xX]|[eE][xX][tT]\\.?) ?[0-9]{1,8})?$',
    description: 'The number, as it was written; with a country code it can be found in any spelling.',
    examples: ['+43 1 234 56 78'],
  }),
  e164: Type.Optional(
    Type.Union([Type.String(), Type.Null()], {
      description: 'The number in the form of ITU-T E.164; null where its country cannot be told.',
      examples: ['+4312345678'],
      readOnly: true,
    }),
  ),
  label: label('office'),
  isPrimary,
})

/** The fields `emails`, `phones`, `primaryEmail`, `primaryPhone`. */
export function reachabilityFields(): readonly ModuleField[] {
  return [
    list(
      'emails',
      'E-mail addresses',
      'E-mail addresses, each once, one of them primary.',
      EmailEntry,
      20,
      [{ address: 'ada@northwind.example', label: 'work', isPrimary: true }],
      { default: [] },
    ),
    list(
      'phones',
      'Telephone numbers',
      'Telephone numbers, each once, one of them primary.',
      PhoneEntry,
      20,
      [{ number: '+43 1 234 56 78', e164: '+4312345678', label: 'office', isPrimary: true }],
      { default: [] },
    ),
    email('primaryEmail', 'E-mail', 'The primary e-mail address. Follows `emails`.', 'ada@northwind.example', {
      readOnly: true,
      readInto: 'emails',
      indexed: true,
      searchable: true,
    }),
    phone(
      'primaryPhone',
      'Telephone',
      'The primary telephone number, as E.164 where it can be. Follows `phones`.',
      '+4312345678',
      { readOnly: true, readInto: 'phones', indexed: true, searchable: true },
    ),
  ]
}

/** Emails, phones and the primary of each, as they are kept. Throws `field_value_invalid` for one that is there twice. */
export function reachabilityOf(values: ModuleValues): ModuleValues {
  const emails = withOnePrimary((values['emails'] ?? []) as readonly Email[])
  const phones = withOnePrimary(
    ((values['phones'] ?? []) as readonly Phone[]).map((entry) => ({ ...entry, e164: e164Of(entry.number) })),
  )
  requireDistinct(
    'emails',
    'address',
    emails.map((entry) => entry.address.toLowerCase()),
  )
  requireDistinct(
    'phones',
    'number',
    phones.map((entry) => entry.e164 ?? entry.number.replaceAll(/[^\d+]/g, '')),
  )
  const primaryPhone = phones.find((entry) => entry.isPrimary)
  return {
    emails,
    phones,
    primaryEmail: emails.find((entry) => entry.isPrimary)?.address ?? null,
    primaryPhone: primaryPhone ? (primaryPhone.e164 ?? primaryPhone.number) : null,
  }
}

/** A number in the form of E.164, or null: it has no country code, or no country has such numbers. */
export function e164Of(number: string): string | null {
  const parsed = parsePhoneNumber(number)
  return parsed?.isPossible() ? parsed.number : null
}

/** Every spelling by which `search` is to find the addresses and numbers of a record. */
export function spellingsOf(values: ModuleValues): string[] {
  const emails = (values['emails'] ?? []) as readonly Email[]
  const phones = (values['phones'] ?? []) as readonly Phone[]
  return [
    ...emails.map((entry) => entry.address),
    ...phones.flatMap(({ number, e164 }) => (e164 ? [number, e164] : [number])),
  ]
}

function withOnePrimary<E extends { readonly isPrimary?: boolean }>(
  entries: readonly E[],
): (E & { isPrimary: boolean })[] {
  const marked = entries.findIndex((entry) => entry.isPrimary === true)
  return entries.map((entry, index) => ({ ...entry, isPrimary: index === Math.max(marked, 0) }))
}

function requireDistinct(field: string, part: string, keys: readonly string[]): void {
  const second = keys.findIndex((key, index) => keys.indexOf(key) !== index)
  if (second < 0) return
  throw fail('field_value_invalid', { field: `${field}[${second}].${part}`, message: 'It is in the list already.' })
}
