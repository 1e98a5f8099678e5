import { type ErrorCode, type ErrorEntry, errorTable } from '../../kernel/errors.ts'
import { generatedNotice, tableOf } from './markdown.ts'

/** `docs/errors.md`: every code of the catalogue, in its order. */
export function renderErrors(): string {
  const entries = Object.entries(errorTable) as [ErrorCode, ErrorEntry][]
  const rows = entries.map(([code, { status, message, retryable }]) => [
    String(status),
    `\`${code}\``,
    message,
    retryable ? 'yes' : '',
  ])
  return `# Errors

${generatedNotice('server/src/kernel/errors.ts')}

Every error has the body \`{"error", "code", "correlationId"}\`. \`error\` is for people and may change; \`code\` is stable.
\`correlationId\` names the request in logs and diagnostics, and is also in the header \`X-Correlation-Id\`. Where there is
something to correct, \`details\` lists it as \`{"field", "code", "message"}\`.

*Retryable*: the same request can succeed later without a change. Such an answer carries \`Retry-After\` in whole seconds.

${tableOf(['Status', 'Code', 'Meaning', 'Retryable'], rows)}
`
}
