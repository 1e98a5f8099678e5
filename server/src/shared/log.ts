import { createRequire } from 'node:module'
import { type DestinationStream, type Logger, pino } from 'pino'
import type { ErrorDetail } from '../kernel/errors.ts'
import type { Outcome } from '../kernel/exchange.ts'
import { redactLine, redactValue } from './redaction.ts'

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]
export type Log = Logger

export interface LogOptions {
  readonly level: LogLevel
  /** For people on a terminal; else one JSON object on each line. */
  readonly pretty: boolean
  /** Standard output unless said otherwise. */
  readonly destination?: DestinationStream
}

/**
 * The structured log. Every object is copied without what its keys name as secret and cut to a size, and every line is
 * searched for tokens once more as text, because they turn up inside error messages.
 */
export function createLog({ level, pretty, destination }: LogOptions): Log {
  const redactFields = (fields: object) => redactValue(fields) as Record<string, unknown>
  const target = destination ?? pino.destination({ fd: 1, sync: true })
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // Errors are plain objects by then; see `redaction.ts`.
      serializers: { err: (described: unknown) => described },
      formatters: { level: (label) => ({ level: label }), bindings: redactFields, log: redactFields },
      hooks: { streamWrite: redactLine },
    },
    pretty ? prettyStream(target, destination === undefined) : target,
  )
  // pino leaves the bindings of children as they are.
  const { child } = log
  log.child = function redacting(this: Log, fields: object, options?: object) {
    return child.call(this, redactFields(fields), options)
  } as typeof child
  return log
}

/** Loaded only where somebody looks: it costs 20 ms at the start. */
function prettyStream(target: DestinationStream, colorize: boolean): DestinationStream {
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty')
  const prettify = prettyFactory({ colorize, translateTime: 'SYS:HH:MM:ss.l' })
  return { write: (line) => target.write(prettify(line)) }
}

/**
 * One line for each request: debug when it succeeded, info when the client erred, error, with the whole cause, when the
 * service did. The correlation id is the one that the client was given.
 */
export function logOutcome(log: Log, outcome: Outcome): void {
  const { status, failure } = outcome
  if (status >= 500) log.error({ ...fieldsOf(outcome), err: failure?.cause ?? failure }, sentenceOf(outcome))
  else if (status >= 400) {
    if (log.isLevelEnabled('info')) log.info(fieldsOf(outcome), sentenceOf(outcome))
  } else if (log.isLevelEnabled('debug')) log.debug(fieldsOf(outcome), sentenceOf(outcome))
}

const fieldsMax = 50
const fieldLengthMax = 200

function fieldsOf({ correlationId, operation, caller, code, durationMs, failure }: Outcome): Record<string, unknown> {
  return {
    correlationId,
    operationId: operation.id,
    ...(code !== undefined && { code }),
    durationMs: Math.round(durationMs * 10) / 10,
    ...(caller && { tenantId: caller.tenantId, keyId: caller.keyId, actorId: caller.actor.id }),
    // Which fields were wrong, never what was in them. Clients choose the names of unknown ones, and how long those are.
    ...(failure?.details && { fields: failure.details.slice(0, fieldsMax).map(nameOf) }),
  }
}

function nameOf({ field, code }: ErrorDetail): string {
  return `${field.slice(0, fieldLengthMax)}: ${code}`
}

function sentenceOf({ operation, status }: Outcome): string {
  return `${operation.method} ${operation.path} answered ${status}`
}
