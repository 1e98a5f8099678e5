import { setTimeout as pause } from 'node:timers/promises'

/** A client of one application: the token, the base address, and the patience that a long load needs. */
export interface ClientOptions {
  readonly baseUrl: string
  readonly saasAppId: string
  readonly token: string
}

export interface Answer<Body> {
  readonly body: Body
  /** The service had done this before, and gave the same answer again. */
  readonly replayed: boolean
}

export interface ApiError {
  readonly error: string
  readonly code: string
  readonly correlationId: string
  readonly details?: readonly { readonly field: string; readonly message: string }[]
}

/** The service refused, and would refuse again. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number

  constructor(status: number, body: Partial<ApiError>) {
    const details = (body.details ?? []).map((detail) => ` ${detail.field}: ${detail.message}`)
    super(`${status} ${body.code ?? ''}: ${body.error ?? 'no JSON'}${details.join('')} (${body.correlationId})`)
    this.status = status
  }
}

const attemptsMax = 12

export class Client {
  readonly #base: string
  readonly #token: string

  constructor({ baseUrl, saasAppId, token }: ClientOptions) {
    this.#base = `${baseUrl}/v1/apps/${saasAppId}`
    this.#token = token
  }

  get<Body>(path: string): Promise<Answer<Body>> {
    return this.#send('GET', path)
  }

  /**
   * `idempotencyKey` makes a change safe to repeat: without one, nobody can know whether a request that got no answer was
   * carried out, and repeating it could double it.
   */
  post<Body>(path: string, body: object, idempotencyKey?: string): Promise<Answer<Body>> {
    return this.#send('POST', path, body, idempotencyKey)
  }

  /** Repeats what may be repeated: no answer, 429 and 503 (after the time they name), a key still at work. */
  async #send<Body>(method: string, path: string, body?: object, idempotencyKey?: string): Promise<Answer<Body>> {
    const request = {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(this.#base + path, request)
        if (response.ok) {
          return {
            body: (await response.json()) as Body,
            replayed: response.headers.get('idempotency-replayed') === 'true',
          }
        }
        const refusal = (await response.json().catch(() => ({}))) as Partial<ApiError>
        const afterSeconds = Number(response.headers.get('retry-after'))
        if (!(afterSeconds > 0) || attempt === attemptsMax) throw new Refusal(response.status, refusal)
        await pause(afterSeconds * 1000)
      } catch (error) {
        if (error instanceof Refusal || attempt === attemptsMax) throw error
        // No connection, or none any more: the service restarts.
        await pause(Math.min(100 * 2 ** attempt, 5_000))
      }
    }
  }
}
