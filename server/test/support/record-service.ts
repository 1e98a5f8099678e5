import { randomBytes } from 'node:crypto'
import type { ErrorBody } from '../../src/kernel/errors.ts'
import { uuidv7 } from '../../src/kernel/ids.ts'
import { registry } from '../../src/operations.ts'
import { createService, type Service } from '../../src/service.ts'
import type { DatabaseOptions } from '../../src/shared/database/database.ts'
import { createLog } from '../../src/shared/log.ts'
import type { RecordView } from '../../src/shared/records/record.ts'
import { asAdministrator } from './administrator.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { createMailbox } from './mailbox.ts'
import { openTestSecrets } from './secrets.ts'
import { pepper, type TestCredential } from './tenants.ts'

/**
 * The whole service on a database of its own, for tests that work on records: every request takes the pipeline, every
 * answer is held against its schema, nothing is limited by rate, and an answer of 500 throws what the log says of it.
 */
export interface RecordService {
  readonly db: TestDatabase
  readonly service: Service
  /** The operations of one object as one credential, in one application. */
  records(appId: string, credential: TestCredential, objectKey: string): RecordClient
  send<T>(operationId: string, credential: TestCredential, sent: Sent): Promise<Answer<T>>
  close(): Promise<void>
}

export interface Sent {
  readonly params: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  /** JSON as text, for what JSON.stringify would not write: -0, repeated names. */
  readonly json?: string
  readonly idempotencyKey?: string
  readonly ifMatch?: string
}

export interface Answer<T> {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What a client reads from the wire; an `ErrorBody` where the status says so. */
  readonly body: T & Partial<ErrorBody>
}

export type Guards = Pick<Sent, 'idempotencyKey' | 'ifMatch'>
export type SearchAnswer = {
  readonly records: readonly RecordView[]
  readonly hasMore: boolean
  readonly page: number | null
  readonly pageSize: number
  readonly nextCursor: string | null
  readonly totalRecords?: number
  readonly totalIsExact?: boolean
}
export type BatchAnswer = {
  readonly results: readonly {
    readonly index: number
    readonly status: number
    readonly record?: RecordView
    readonly error?: ErrorBody
  }[]
}
export type HistoryAnswer = {
  readonly items: readonly {
    readonly revision: number
    readonly operation: string
    readonly changedAt: string
    readonly changedBy: { readonly kind: string; readonly id: string }
    readonly changes: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[]
  }[]
  readonly nextCursor: string | null
}
export type ParticipantsAnswer = {
  readonly items: readonly { readonly userId: string; readonly displayName: string }[]
}

/** `now` stops the clock, where the meaning of `$now` matters; `settings` are what somebody else's database may have. */
export async function startRecordService(
  options: { readonly now?: number; readonly settings?: readonly string[] } & Partial<DatabaseOptions> = {},
): Promise<RecordService> {
  const { now, settings = [], ...databaseOptions } = options
  const db = await createTestDatabase(databaseOptions)
  await asAdministrator(db.connection, async (admin) => {
    for (const setting of settings) await admin.query(`ALTER DATABASE ${db.connection.database} SET ${setting}`)
  })
  const errors: string[] = []
  const service = createService({
    connection: db.login,
    poolSize: databaseOptions.poolSize ?? 10,
    keys: { pepper, cursors: randomBytes(32) },
    secrets: await openTestSecrets(db.database),
    mail: createMailbox(),
    baseUrl: 'http://127.0.0.1:8080',
    rateLimitScale: 0,
    allowPrivateDestinations: true,
    log: createLog({ level: 'error', pretty: false, destination: { write: (line) => void errors.push(line) } }),
    checkResponses: true,
    ...(now !== undefined && { clock: { now: () => now } }),
  })

  async function send<T>(operationId: string, credential: TestCredential, sent: Sent): Promise<Answer<T>> {
    const operation = registry.get(operationId)
    if (!operation) throw new Error(`There is no operation ${operationId}.`)
    const json = sent.json ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body))
    const correlationId = uuidv7(Date.now())
    const { status, headers, payload } = await service.invoke(operation, {
      correlationId,
      token: credential.token,
      address: '127.0.0.1',
      host: '127.0.0.1',
      userAgent: 'test',
      params: sent.params,
      query: sent.query ?? {},
      readBody: () => (json === undefined ? undefined : JSON.parse(json)),
      idempotencyKey: sent.idempotencyKey,
      ifMatch: sent.ifMatch,
    })
    // Whatever a client asks: an unexpected error is a bug of the service, and the log knows where.
    if (status === 500) throw new Error(errors.find((line) => line.includes(correlationId)))
    return { status, headers, body: JSON.parse(payload) as T & Partial<ErrorBody> }
  }

  return {
    db,
    service,
    send,
    records: (appId, credential, objectKey) => recordClient(send, appId, credential, objectKey),
    async close() {
      await service.close()
      await db.drop()
    },
  }
}

/** Every record that a search finds, over as many pages as it takes, with the total that the first page tells. */
export async function searchAll(
  client: RecordClient,
  question: object,
): Promise<{ readonly records: RecordView[]; readonly total: number | undefined }> {
  const records: RecordView[] = []
  let position: object | undefined = { includeTotal: true }
  let total: number | undefined
  while (position) {
    const { status, body } = await client.search({ pageSize: 200, ...question, ...position })
    if (status !== 200) throw new Error(JSON.stringify(body))
    records.push(...body.records)
    total ??= body.totalRecords
    position = body.nextCursor === null ? undefined : { cursor: body.nextCursor }
  }
  return { records, total }
}

export type RecordClient = ReturnType<typeof recordClient>

function recordClient(send: RecordService['send'], saasAppId: string, credential: TestCredential, objectKey: string) {
  const params = { saasAppId, objectKey }
  const one = (recordId: string) => ({ ...params, recordId })
  const call = <T>(id: string, sent: Omit<Sent, 'params'>, at: Record<string, string> = params) =>
    send<T>(`developerRecords${id}`, credential, { ...sent, params: at })
  return {
    search: (body: unknown) => call<SearchAnswer>('Search', { body }),
    count: (body: unknown) => call<{ totalRecords: number; totalIsExact: boolean }>('Count', { body }),
    get: (recordId: string, query: Sent['query'] = {}) => call<RecordView>('Get', { query }, one(recordId)),
    history: (recordId: string, query: Sent['query'] = {}) =>
      call<HistoryAnswer>('GetHistory', { query }, one(recordId)),
    participants: (recordId: string) => call<ParticipantsAnswer>('ListParticipants', {}, one(recordId)),
    create: (body: unknown, guards: Guards = {}) => call<RecordView>('Create', { body, ...guards }),
    createFromJson: (json: string) => call<RecordView>('Create', { json }),
    update: (recordId: string, body: unknown, guards: Guards = {}) =>
      call<RecordView>('Update', { body, ...guards }, one(recordId)),
    updateFromJson: (recordId: string, json: string) => call<RecordView>('Update', { json }, one(recordId)),
    archive: (recordId: string, guards: Guards & { query?: Sent['query'] } = {}) =>
      call<RecordView>('Archive', guards, one(recordId)),
    restore: (recordId: string, body?: unknown, guards: Guards = {}) =>
      call<RecordView>('Restore', { body, ...guards }, one(recordId)),
    upsert: (externalKey: string, body: unknown, guards: Guards = {}) =>
      call<RecordView>('Upsert', { body, ...guards }, { ...params, externalKey }),
    setParticipants: (recordId: string, participants: readonly string[], guards: Guards = {}) =>
      call<ParticipantsAnswer>('SetParticipants', { body: { participants }, ...guards }, one(recordId)),
    batch: (items: readonly unknown[], atomic = false, guards: Guards = {}) =>
      call<BatchAnswer>('Batch', { body: { items, atomic }, ...guards }),
  }
}
