import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import type { ModuleField } from '../module.ts'
import { list } from './fields.ts'

const Reminder = Strict({
  minutesBefore: Type.Integer({
    minimum: 0,
    maximum: 40_320,
    description: 'Minutes before, up to four weeks.',
    examples: [15],
  }),
  method: Type.Enum(['email', 'notification', 'sms'], {
    description: 'How people are reminded.',
    examples: ['notification'],
  }),
})

export function reminders(of: string): ModuleField {
  const example = [{ minutesBefore: 15, method: 'notification' }]
  return list('reminders', 'Reminders', `When to remind of ${of}.`, Reminder, 10, example, { default: [] })
}
