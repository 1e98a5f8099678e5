import { expect } from 'vitest'
import { type ErrorCode, errorTable } from '../../src/kernel/errors.ts'
import type { Operation } from '../../src/kernel/operation.ts'
import { errorCodesOf } from '../../src/kernel/registry.ts'
import type { Answer } from './http-client.ts'

/** An answer is the refusal that the operation declares. */
export function expectRefusal(operation: Operation<never>, answer: Answer, code: ErrorCode, context = ''): void {
  expect(answer.json, `${context} ${answer.text}`).toMatchObject({ code })
  expect(answer.status).toBe(errorTable[code].status)
  expect(errorCodesOf(operation)).toContain(code)
}

/** A 400 whose details name the field, or something inside it. */
export function expectNamed(answer: Answer, field: string, context: string): void {
  expect(answer.status, `${context}: ${answer.text}`).toBe(400)
  const fields = (answer.json.details ?? []).map((detail) => detail.field)
  const isNamed = fields.some((name) => name === field || name.startsWith(`${field}.`) || name.startsWith(`${field}[`))
  expect(isNamed, `${context}: ${field} is not among ${fields.join()} of ${answer.text}`).toBe(true)
}

/** Text without what differs from one request to the next. */
export function withoutIds(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, 'id')
    .replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'time')
}
