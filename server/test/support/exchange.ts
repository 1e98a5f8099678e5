import type { ErrorBody } from '../../src/kernel/errors.ts'
import type { Answer, Sent } from './http-client.ts'
import type { TestService } from './service.ts'
import type { TestCredential } from './tenants.ts'

/** Imports and exports over HTTP, waited for. */
export interface Ended {
  readonly operationId: string
  readonly status: string
  readonly progress: {
    readonly total: number
    readonly processed: number
    readonly succeeded: number
    readonly failed: number
  }
  readonly result: Readonly<Record<string, unknown>> | null
  readonly error: ErrorBody | null
  readonly errorsUrl: string | null
  readonly expiresAt: string | null
}

export interface ErrorLine {
  readonly row: number
  readonly field: string | null
  readonly code: string
  readonly message: string
}

export type Exchange = ReturnType<typeof exchangeOf>

/** `records`: the path of what is exchanged, for instance `/objects/deal/records` or `/modules/contacts`. */
export function exchangeOf(
  service: Pick<TestService, 'app' | 'call' | 'service'>,
  records: string,
  credential: TestCredential,
) {
  const { appId } = service.app
  const { token } = credential
  const ask = <T = Ended>(method: string, path: string, sent: Sent = {}) =>
    service.call<T>(method, path, { token, ...sent })
  const operation = (operationId: string) => `/v1/apps/${appId}/operations/${operationId}`

  async function end(answer: Answer<{ operationId: string }>): Promise<Ended> {
    if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`)
    await service.service.operationRunner!.wake()
    return (await ask('GET', operation(answer.json.operationId))).json
  }

  const begin = (verb: 'import' | 'export', sent: Sent) =>
    ask<{ operationId: string }>('POST', `/v1/apps/${appId}${records}:${verb}`, sent)

  return {
    begin,
    end,
    async import(content: string, options: object = {}) {
      return end(await begin('import', { body: { format: 'csv', content, ...options } }))
    },
    async upload(file: string | Buffer, options: object = {}, sent: Sent = {}) {
      return end(await begin('import', { ...parts({ format: 'csv', ...options }, file), ...sent }))
    },
    async export(options: object = {}) {
      const ended = await end(await begin('export', { body: { format: 'csv', ...options } }))
      const file = ended.status === 'succeeded' ? await ask('GET', `${operation(ended.operationId)}/file`) : undefined
      return { ...ended, file, text: file?.text ?? '' }
    },
    async errors({ operationId }: Pick<Ended, 'operationId'>): Promise<ErrorLine[]> {
      const { text } = await ask('GET', `${operation(operationId)}/errors`)
      return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as ErrorLine]))
    },
    status: (operationId: string) => ask('GET', operation(operationId)),
    cancel: (operationId: string) => ask('POST', `${operation(operationId)}:cancel`),
    list: (query = '') =>
      ask<{ items: readonly Ended[]; nextCursor: string | null }>('GET', `/v1/apps/${appId}/operations${query}`),
    file: (operationId: string) => ask('GET', `${operation(operationId)}/file`),
  }
}

const boundary = 'the-boundary-of-the-tests'

/** A request of the parts `options` and `file`. */
export function parts(
  options: unknown,
  file: string | Buffer,
  order: 'options first' | 'file first' = 'options first',
): Sent {
  const part = (name: string, more: string, content: string | Buffer) =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`),
      Buffer.from(content as string),
      Buffer.from('\r\n'),
    ])
  const both = [part('options', '', JSON.stringify(options)), part('file', '; filename="a.csv"', file)]
  const ordered = order === 'options first' ? both : both.reverse()
  return {
    raw: Buffer.concat([...ordered, Buffer.from(`--${boundary}--\r\n`)]),
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  }
}

/** The cells of a file of CSV that quotes nothing with a line break in it. */
export function cellsOf(text: string): string[][] {
  return text
    .split('\r\n')
    .filter((line) => line !== '')
    .map((line) => line.split(','))
}
