import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Busboy, type BusboyFileStream, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy'
import { type Failure, fail } from '../../kernel/errors.ts'
import type { Upload } from '../../kernel/operation.ts'
import { answerContinue, discard } from './body.ts'
import { parseJson } from './json-body.ts'

/** What came in front of the file, and the file, of which nothing has been read yet. */
export interface Multipart {
  readonly options: unknown
  readonly upload: Upload
  /** Throws away what nobody has read when the request was answered. */
  drop(): void
}

export function isMultipart({ 'content-type': contentType }: IncomingHttpHeaders): boolean {
  return /^multipart\/form-data\s*;/i.test(contentType ?? '')
}

/** Part headers: far more than a name and a type need. */
const headerBytesMax = 8 * 1024

/**
 * Receives a request of two parts: `options`, which is JSON, and behind it `file`. The order is demanded, because what the file is
 * for has to be known before it comes: it is then read at the pace of whoever stores it.
 *
 * Throws `malformed_request`, `validation_failed` where a part is missing or too late, `payload_too_large` where the options
 * are too large, and what is wrong with their JSON.
 */
export function receiveMultipart(
  request: IncomingMessage,
  response: ServerResponse,
  limits: { readonly optionsBytesMax: number; readonly fileBytesMax: number },
): Promise<Multipart> {
  const { optionsBytesMax, fileBytesMax } = limits
  const { promise, resolve, reject } = Promise.withResolvers<Multipart>()
  if (request.destroyed) throw leftEarly()
  const parser = openParser(request.headers, limits)
  let fault: Failure | undefined
  let options: { readonly value: unknown } | undefined
  let file: BusboyFileStream | undefined

  /** The rest is read and thrown away, so that the client gets to see the answer. */
  function stop(failure: Failure): void {
    if (fault) return
    fault = failure
    request.unpipe(parser)
    if (!request.destroyed) discard(request)
    file?.destroy(failure)
    reject(failure)
  }

  parser.on('field', (name, text, _, truncated) => {
    if (name !== 'options') return stop(unexpectedPart(name))
    if (truncated) return stop(fail('payload_too_large'))
    try {
      options = { value: parseJson(Buffer.from(text)) }
    } catch (error) {
      stop(error as Failure)
    }
  })
  parser.on('file', (name, stream) => {
    file = stream
    // Without a listener an error would end the process; who reads it learns of it there.
    stream.on('error', () => undefined)
    stream.once('limit', () => stop(fail('payload_too_large')))
    if (name !== 'file') return stop(unexpectedPart(name))
    if (!options) return stop(missingPart('options', 'The part `options` has to come before the part `file`.'))
    const drop = () => {
      if (!request.complete) stop(malformed('The request was answered before its file was read.'))
    }
    resolve({ options: options.value, upload: uploadOf(stream), drop })
  })
  for (const event of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(event, () => stop(malformed('Send the parts `options` and `file`, each once.')))
  }
  parser.on('error', () => stop(malformed('The body is not valid multipart/form-data.')))
  parser.on('finish', () => {
    if (!file) stop(missingPart(options ? 'file' : 'options', 'The parts `options` and `file` are required.'))
  })
  request.once('close', () => {
    if (!request.complete) stop(leftEarly())
  })
  answerContinue(request, response)
  request.pipe(parser)
  if (Number(request.headers['content-length'] ?? 0) > fileBytesMax + optionsBytesMax + 2 * headerBytesMax) {
    stop(fail('payload_too_large'))
  }
  return promise
}

/** The file, received once; a handler that starts over gets what was made of it. */
function uploadOf(stream: BusboyFileStream): Upload {
  let made: Promise<unknown> | undefined
  return {
    receive<T>(take: (bytes: AsyncIterable<Uint8Array>) => Promise<T>) {
      made ??= take(whole(stream))
      return made as Promise<T>
    },
  }
}

async function* whole(stream: BusboyFileStream): AsyncGenerator<Buffer> {
  for await (const bytes of stream) yield bytes as Buffer
  if (stream.truncated) throw fail('payload_too_large')
}

function openParser(
  headers: IncomingHttpHeaders,
  { optionsBytesMax, fileBytesMax }: { readonly optionsBytesMax: number; readonly fileBytesMax: number },
): BusboyInstance {
  try {
    return new Busboy({
      headers: headers as BusboyHeaders,
      isPartAFile: (name) => name !== 'options',
      limits: {
        fields: 1,
        files: 1,
        parts: 2,
        fieldSize: optionsBytesMax,
        fileSize: fileBytesMax,
        headerPairs: 20,
        headerSize: headerBytesMax,
      },
    })
  } catch {
    throw fail('malformed_request', { field: 'Content-Type', message: 'multipart/form-data needs a boundary.' })
  }
}

const malformed = (message: string) => fail('malformed_request', { field: 'body', message })
const missingPart = (field: string, message: string) => fail('validation_failed', { field, message })
const leftEarly = () => malformed('The body ended too early.')
const unexpectedPart = (name: string | undefined) =>
  fail('unknown_field', { field: name || 'body', message: 'Expected the parts `options` and `file`.' })
