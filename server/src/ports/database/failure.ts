/** What an unknown error says, for messages that a person reads. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join(', ')
  if (!(error instanceof Error)) return String(error)
  return error.message || codeOf(error) || error.name
}

/** The code of a system error (`ENOENT`) or of a PostgreSQL error (`28P01`). */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
