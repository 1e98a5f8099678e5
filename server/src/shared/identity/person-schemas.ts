import Type from 'typebox'
import { addressLengthMax } from '../../ports/mail/port.ts'

/** A label for people: one line with something on it. */
export function Name(description: string, example: string) {
  return Type.String({
    minLength: 1,
    maxLength: 200,
    // Without control characters and halves of surrogate pairs, which no text of the database can hold.
    pattern: '^[^\\p{Cc}\\p{Cs}]*[^\\p{Cc}\\p{Cs}\\s][^\\p{Cc}\\p{Cs}]*$',
    description,
    examples: [example],
  })
}

/** Where mail can be sent: the plain form, with a domain that has a dot. Compared without regard to case. */
export function EmailAddress(description: string, example = 'ada@northwind.example') {
  const part = '[^\\s@"(),:;<>[\\\\\\]\\p{Cc}\\p{Cf}\\p{Cs}]'
  return Type.String({
    maxLength: addressLengthMax,
    pattern: `^${part}{1,64}@${part}+\\.${part}+$`,
    description,
    examples: [example],
  })
}
