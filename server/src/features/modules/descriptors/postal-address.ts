import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import type { ModuleField } from '../module.ts'
import { list, structure } from './fields.ts'

/** Where something is or goes to by post, in the parts that addresses of all countries have. */
function part(description: string, example: string, maxLength = 200) {
  return Type.Optional(Type.String({ maxLength, description, examples: [example] }))
}

const parts = {
  recipient: part('Whom it is for.', 'Northwind Traders'),
  line1: part('Street and house number, or post office box.', 'Opernring 1'),
  line2: part('Building, floor, door.', 'Top 12'),
  postalCode: part('Postal code.', '1010', 20),
  city: part('City or town.', 'Vienna', 100),
  region: part('State, province or county.', 'Vienna', 100),
  country: Type.Optional(
    Type.String({ pattern: '^[A-Z]{2}$', description: 'Country: ISO 3166-1 alpha-2.', examples: ['AT'] }),
  ),
}

const example = { line1: 'Opernring 1', postalCode: '1010', city: 'Vienna', country: 'AT' }

/** The list `addresses`. */
export function addresses(): ModuleField {
  const Address = Strict({
    label: Type.Optional(
      Type.Enum(['billing', 'shipping', 'office', 'home', 'other'], {
        description: 'What the address is for.',
        examples: ['billing'],
      }),
    ),
    ...parts,
  })
  return list('addresses', 'Addresses', 'Postal addresses.', Address, 20, [{ label: 'billing', ...example }], {
    default: [],
  })
}

/** One address, of a document or a parcel. */
export function postalAddress(
  fieldKey: string,
  label: string,
  description: string,
  more: Partial<ModuleField> = {},
): ModuleField {
  return structure(fieldKey, label, description, Strict(parts, { description, examples: [example] }), example, more)
}
