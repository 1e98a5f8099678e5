import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { fail } from '../../kernel/errors.ts'
import { parseJson } from './json-body.ts'

/** How a body arrived. `left`: the client went away, and there is nobody to answer. */
export type Arrival = Buffer | 'too_large' | 'late' | 'left'

/** A body that is held in memory has to come within this time; files, which are not, have the time of the whole request. */
const bodyWithinMs = 60_000

const empty = Buffer.alloc(0)

/**
 * What of a body is not wanted is read and thrown away, up to this much, so that a client which writes first and reads
 * afterwards still gets to see its 401 or 413; closing at once would reset the connection under it.
 */
const discardBytesMax = 16 * 1024 * 1024

/** Reads a body of at most `bytesMax`. Settles as soon as the outcome is known, before the rest has arrived. */
export function receiveBody(
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number,
): Arrival | Promise<Arrival> {
  if (!hasBody(request.headers)) return empty
  // It may have gone while its credential was looked up; no event would tell of it again.
  if (request.destroyed) return 'left'
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return 'too_large'
  answerContinue(request, response)
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    const settle = (arrival: Arrival) => {
      clearTimeout(late)
      resolve(arrival)
    }
    const late = setTimeout(() => {
      request.off('data', onData)
      // Once it is answered: a client that drips would keep the connection for as long as it likes.
      response.once('finish', () => request.socket.destroy())
      discard(request)
      settle('late')
    }, bodyWithinMs)
    const onData = (chunk: Buffer) => {
      sizeBytes += chunk.length
      if (sizeBytes <= bytesMax) {
        chunks.push(chunk)
        return
      }
      request.off('data', onData)
      discard(request)
      settle('too_large')
    }
    request.on('data', onData)
    request.once('end', () => settle(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, sizeBytes)))
    request.once('error', () => settle('left'))
    request.once('close', () => settle('left'))
  })
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  const declared = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (declared !== undefined && declared !== '0')
}

/** The body is wanted: tells a client that waits for that word. */
export function answerContinue(request: IncomingMessage, response: ServerResponse): void {
  if (awaitsContinue(request)) response.writeContinue()
}

/** Does the client send its body only when it is told to? Node leaves that to us; see `checkContinue` in `server.ts`. */
function awaitsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersion === '1.1' && /\b100-continue\b/i.test(headers.expect)
}

/**
 * Before an answer: lets go of a body that nobody asked for. Returns whether the connection has to end, since there is
 * more of it than is worth reading.
 */
export function dropUnread(request: IncomingMessage): boolean {
  // Not null: somebody has taken the body, or is throwing it away.
  if (request.readableFlowing !== null || !hasBody(request.headers)) return false
  if (Number(request.headers['content-length'] ?? 0) > discardBytesMax) return true
  discard(request)
  return false
}

/** Reads what is left and throws it away; ends the connection where that is more than is worth reading. */
export function discard(request: IncomingMessage): void {
  let sizeBytes = 0
  request.on('error', () => undefined)
  request.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length
    if (sizeBytes > discardBytesMax) request.socket.destroy()
  })
  // What was piped somewhere stands still.
  request.resume()
}

/** Turns an arrived body into a value, or throws what is wrong with it. */
export function parseBody(arrival: Arrival, headers: IncomingHttpHeaders): unknown {
  if (arrival === 'too_large') throw fail('payload_too_large')
  if (arrival === 'late') throw fail('request_timeout')
  if (arrival === 'left') throw fail('malformed_request', { field: 'body', message: 'The body ended too early.' })
  if (arrival.length === 0) return undefined
  if (!isJson(headers['content-type'])) {
    throw fail('unsupported_media_type', { field: 'Content-Type', message: 'Send application/json in UTF-8.' })
  }
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    throw fail('unsupported_media_type', { field: 'Content-Encoding', message: 'Send the body uncompressed.' })
  }
  return parseJson(arrival)
}

const jsonType = /^(application|text)\/json$|^application\/[\w!#$&^.+-]+\+json$/i
const charset = /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/i

/** application/json, text/json or application/*+json; any charset but UTF-8 is refused, other parameters are not. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  if (contentType === undefined) return false
  const [type, ...parameters] = contentType.split(';')
  if (!jsonType.test(type!.trim())) return false
  return parameters.every((parameter) => {
    const name = charset.exec(parameter)?.[1]
    return name === undefined || /^utf-?8$/i.test(name)
  })
}
