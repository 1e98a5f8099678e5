import { setTimeout as pause } from 'node:timers/promises'
import { KeyManagementError } from '../port.ts'

export interface VaultConnection {
  /** `https://vault.example:8200` */
  readonly address: string
  /** A token, or an AppRole that is exchanged for one when it is needed. */
  readonly auth: VaultAuth
  /** Longest that one request may take. */
  readonly timeoutMs?: number
  /** Between attempts; the second pause is twice as long. */
  readonly pauseMs?: number
}

export type VaultAuth = { readonly token: string } | { readonly roleId: string; readonly secretId: string }

export interface VaultRequest {
  readonly method: 'GET' | 'POST'
  /** After `/v1/`. */
  readonly path: string
  readonly body?: object
  /** What to say when what is asked for is not there, and when the token may not ask for it. */
  readonly sentences: { readonly missing: string; readonly permissions: string }
}

export interface Vault {
  /** The `data` of the answer. Throws a `KeyManagementError`. */
  request(request: VaultRequest): Promise<Readonly<Record<string, unknown>>>
}

interface Answer {
  readonly status: number
  readonly body: { readonly data?: Record<string, unknown>; readonly auth?: { readonly client_token?: string } }
  /** What Vault says is wrong. It names no secret; see `oneLine`. */
  readonly errors: string
}

const attemptsMax = 3
const answerBytesMax = 65_536
/** Rate limited, not the active node and not forwarding, sealed, starting. */
const temporaryStatuses = [412, 429, 472, 473, 500, 502, 503, 504]

/** Vault over HTTP: a token on every request, three attempts, limits on time and size, and no redirect with the token. */
export function connectVault({ address, auth, timeoutMs = 5000, pauseMs = 250 }: VaultConnection): Vault {
  let token = 'token' in auth ? auth.token : undefined

  async function send(method: string, path: string, body?: object): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const last = attempt === attemptsMax
      const answer = await sendOnce(method, path, body).catch((cause: unknown) => {
        if (last) throw unavailable(`does not answer: ${reasonOf(cause)}`, cause)
      })
      if (answer && !temporaryStatuses.includes(answer.status)) return answer
      if (answer && last) throw unavailable(`answers ${answer.status}${answer.errors}`)
      await pause(pauseMs * attempt)
    }
  }

  async function sendOnce(method: string, path: string, body: object | undefined): Promise<Answer> {
    const response = await fetch(`${address}/v1/${path}`, {
      method,
      headers: {
        'x-vault-request': 'true',
        ...(token !== undefined && { 'x-vault-token': token }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      // A header of our own making would be sent on to wherever the redirect leads.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    return readAnswer(response)
  }

  async function logIn(): Promise<void> {
    if ('token' in auth) return
    token = undefined
    const answer = await send('POST', 'auth/approle/login', { role_id: auth.roleId, secret_id: auth.secretId })
    token = answer.body.auth?.client_token
    if (token === undefined) {
      const problem = `Vault at ${address} refuses the AppRole (${answer.status}${answer.errors}). Check PORTICO_VAULT_ROLE_ID and PORTICO_VAULT_SECRET_ID.`
      throw new KeyManagementError('refused', problem)
    }
  }

  const unavailable = (problem: string, cause?: unknown) =>
    new KeyManagementError('unavailable', `Vault at ${address} ${problem}. Check PORTICO_VAULT_ADDR.`, { cause })

  return {
    async request({ method, path, body, sentences }) {
      if (token === undefined) await logIn()
      let answer = await send(method, path, body)
      if (answer.status === 403 && !('token' in auth)) {
        // The token of an AppRole lives for an hour or so; the next one may.
        await logIn()
        answer = await send(method, path, body)
      }
      const { status, errors } = answer
      if (status === 200 && answer.body.data) return answer.body.data
      if (status === 403) throw new KeyManagementError('refused', sentences.permissions)
      // A path that nothing is mounted on, and a key that is not there when it is to decrypt.
      if (status === 404 || /encryption key not found/.test(errors)) {
        throw new KeyManagementError('refused', sentences.missing)
      }
      if (status === 400 && /authentication failed|invalid ciphertext|unable to decrypt/i.test(errors)) {
        throw new KeyManagementError('not_authentic', `Vault cannot open a key${errors}.`)
      }
      throw new KeyManagementError('refused', `Vault at ${address} answers ${status} to ${path}${errors}.`)
    },
  }
}

async function readAnswer(response: Response): Promise<Answer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > answerBytesMax) throw new RangeError(`more than ${answerBytesMax} bytes`)
    chunks.push(chunk)
  }
  const body = parse(Buffer.concat(chunks).toString())
  return { status: response.status, body, errors: oneLine(body.errors) }
}

function parse(text: string): Answer['body'] & { readonly errors?: unknown } {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    // Not Vault, or something in front of it. The status is told.
    return {}
  }
}

function oneLine(errors: unknown): string {
  if (!Array.isArray(errors) || errors.length === 0) return ''
  return `: ${errors.join('; ').replaceAll(/\s+/g, ' ').slice(0, 300)}`
}

/** `fetch failed` says nothing; what it hides does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return 'timeout'
  const { cause } = error
  if (cause instanceof AggregateError) return cause.errors.map(reasonOf).join(', ')
  return cause instanceof Error ? cause.message || cause.name : error.message
}
