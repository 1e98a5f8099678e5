import type { ModuleField, ModuleValues } from '../module.ts'
import { text } from './fields.ts'

/** The fields `firstName`, `lastName`, `companyName`, `jobTitle` of somebody. */
export function personNameFields(): readonly ModuleField[] {
  return [
    text('firstName', 'First name', 'Given names, at most 100 characters.', 'Ada', { maxLength: 100 }),
    text('lastName', 'Last name', 'Family names, at most 100 characters.', 'Lovelace', {
      maxLength: 100,
      indexed: true,
    }),
    text('companyName', 'Company name', 'The company as it is written, at most 200 characters.', 'Northwind Traders', {
      maxLength: 200,
      indexed: true,
      searchable: true,
    }),
    text('jobTitle', 'Job title', 'What they do there, at most 200 characters.', 'Head of Purchasing', {
      maxLength: 200,
    }),
  ]
}

/** "Ada Lovelace"; null where neither name has anything on it. */
export function personNameOf(values: ModuleValues): string | null {
  const parts = [values['firstName'], values['lastName']].map((part) => String(part ?? '').trim())
  return parts.filter((part) => part !== '').join(' ') || null
}
