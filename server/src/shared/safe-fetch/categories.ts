/** What became of a request, in the words of contract 6. The set is closed; callers may store it. */
export const fetchCategories = [
  'success',
  'http_3xx',
  'http_4xx',
  'http_5xx',
  'rate_limited',
  'gone',
  'timeout',
  'dns_error',
  'connection_refused',
  'connection_reset',
  'tls_error',
  'blocked_destination',
  'network_error',
] as const

export type FetchCategory = (typeof fetchCategories)[number]

/** One sentence for each category, for people outside: none names an address, which would map the operator's network. */
const sentences: Readonly<Record<FetchCategory, string>> = {
  success: 'The receiver accepted the request.',
  http_3xx: 'The receiver answered with a redirect, which is not followed.',
  http_4xx: 'The receiver refused the request.',
  http_5xx: 'The receiver failed.',
  rate_limited: 'The receiver asks for fewer requests.',
  gone: 'The receiver says that it is gone for good.',
  timeout: 'There was no complete answer in time.',
  dns_error: 'The name of the receiver could not be resolved.',
  connection_refused: 'The receiver refused the connection.',
  connection_reset: 'The connection broke before the answer was complete.',
  tls_error: 'No secure connection could be made.',
  blocked_destination: 'The destination is not allowed: it has to be https, at a public address.',
  network_error: 'The receiver could not be reached, or did not answer in HTTP.',
}

/** Why TLS failed, where the developer of a receiver can mend it. */
const tlsReasons: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate signs itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate comes from an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'it does not send the certificates between its own and a trusted authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
}

const codes: Readonly<Record<string, FetchCategory>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  ETIMEDOUT: 'timeout',
}

/** Ends a request with a category that is already known. */
export class FetchFailure extends Error {
  override readonly name = 'FetchFailure'
  readonly category: FetchCategory

  constructor(category: FetchCategory, sentence: string = sentences[category], options?: ErrorOptions) {
    super(sentence, options)
    this.category = category
  }
}

/** An error of TLS, after the connection was made. A reset stays one: it says nothing about certificates. */
export function tlsFailure(error: Error): FetchFailure {
  const code = codeOf(error)
  if (error instanceof FetchFailure || codes[code]) return failureOf(error)
  const reason = tlsReasons[code]
  const sentence = reason && `No secure connection could be made with the receiver: ${reason}.`
  return new FetchFailure('tls_error', sentence, { cause: error })
}

/** Whatever ended a request, as a failure with a safe sentence. */
export function failureOf(error: unknown): FetchFailure {
  if (error instanceof FetchFailure) return error
  return new FetchFailure(codes[codeOf(error)] ?? 'network_error', undefined, { cause: error })
}

/** The category of an answer that came completely. */
export function categoryOf(status: number): FetchCategory {
  if (status === 410) return 'gone'
  if (status === 429) return 'rate_limited'
  const classes = ['success', 'http_3xx', 'http_4xx', 'http_5xx'] as const
  return classes[Math.floor(status / 100) - 2] ?? 'network_error'
}

export function sentenceOf(category: FetchCategory): string {
  return sentences[category]
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? '')
}
