/**
 * Keeps secrets out of what the service says about itself: the log and the diagnostics. By name, for values whose key
 * says what they are, at any depth; and by form, for tokens that turn up inside other text, such as an error message.
 */
const secretKeys = /authorization|token|secret|password|passwd|cookie|pepper|master_?key|api[_-]?key|private_?key/i
const redacted = '[redacted]'

/** Each takes linear time: what follows a start cannot be a start again, so no character is looked at for many of them. */
const secretForms: readonly (readonly [RegExp, string])[] = [
  // Our own tokens, whole, cut short or mistyped.
  [/ptc_[A-Za-z0-9_]+/g, 'ptc_[redacted]'],
  [/\b(Bearer|Basic)\s+[^\s"',;\\]+/gi, '$1 [redacted]'],
  // The password in a URL, for instance DATABASE_URL.
  [/(:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/g, '$1:[redacted]@'],
]

/** The text without tokens of this service, for text in which other words that look like secrets are names. */
export function redactTokens(text: string): string {
  return text.replace(...secretForms[0]!)
}

/** The text without tokens and passwords. */
export function redactText(text: string): string {
  let clean = text
  for (const [form, replacement] of secretForms) clean = clean.replace(form, replacement)
  return clean
}

/** A line of the log is searched and written up to here. */
export const lineMax = 65_536

/** The same for a line of JSON. Of one that is too long only the beginning is kept, as text. */
export function redactLine(line: string): string {
  if (line.length <= lineMax) return redactText(line)
  const beginning = clipped(line)
  return `${JSON.stringify({ level: 'warn', msg: 'A line of the log was too long.', length: line.length, beginning })}\n`
}

const depthMax = 8
const entriesMax = 200
const textMax = 4096
const keyMax = 200

/** A plain copy to be logged, without what a key names as secret, of bounded size, errors as `describeError` has them. */
export function redactValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return clipped(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Error) return describeError(value, depth)
  if (value instanceof Date) return value
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth === depthMax) return '[deeper]'
  if (Array.isArray(value)) return value.slice(0, entriesMax).map((item) => redactValue(item, depth + 1))
  return redactObject(Object.entries(value), depth)
}

/** Redacted before it is cut, since half a secret may no longer look like one. */
function clipped(text: string): string {
  return text.length > textMax ? `${redactText(text.slice(0, 2 * textMax)).slice(0, textMax)}…` : text
}

function redactObject(entries: readonly (readonly [string, unknown])[], depth: number): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (const [key, value] of entries.slice(0, entriesMax)) {
    const silent = secretKeys.test(key) && value !== null && value !== undefined && typeof value !== 'boolean'
    copy[key.slice(0, keyMax)] = silent ? redacted : redactValue(value, depth + 1)
  }
  return copy
}

/** What of PostgreSQL's errors names things. `detail` and `where` stay out: they quote the row. */
const namingProperties = ['code', 'severity', 'schema', 'table', 'column', 'constraint', 'routine', 'syscall'] as const

/** An error and its causes, without the properties that libraries hang on errors: requests, headers, rows. */
export function describeError(error: Error, depth = 0): Record<string, unknown> {
  const { name, message, stack, cause } = error
  const described: Record<string, unknown> = { type: name, message: clipped(message) }
  for (const property of namingProperties) {
    const value = (error as unknown as Record<string, unknown>)[property]
    if (typeof value === 'string') described[property] = clipped(value)
  }
  described['stack'] = stack && clipped(stack)
  if (depth >= depthMax) return described
  if (cause !== undefined) described['cause'] = redactValue(cause, depth + 1)
  if (error instanceof AggregateError) described['errors'] = redactValue(error.errors, depth + 1)
  return described
}
