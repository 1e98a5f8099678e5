import type { DebianPackage, Maintainer } from './catalogue.ts'
import type { ApiError, Client } from './client.ts'
import type { Position } from './position.ts'
import { batchesOf, type Source, type Survey } from './source.ts'

export interface LoadOptions {
  readonly client: Client
  readonly source: Source
  readonly survey: Survey
  readonly position: Position
  /** Records in one request; the service takes at most 200. */
  readonly batchSize: number
  /** Requests on their way at the same time. */
  readonly inFlight: number
  onLoaded(count: number): void
}

export interface LoadResult {
  readonly created: number
  readonly updated: number
  /** Batches that the service had written before this process could note it. */
  readonly replayed: number
  readonly problems: readonly string[]
}

interface BatchResult {
  readonly index: number
  readonly status: number
  readonly record?: { readonly recordId: string }
  readonly error?: ApiError
}

/**
 * Loads the catalogue: maintainers first, since packages refer to them; then the packages, several batches at a time.
 * Every item is an upsert by external key (the address, the name), so that a catalogue that was loaded last month is
 * brought up to date, and every batch carries an Idempotency-Key, so that one whose answer was lost is not done twice.
 */
export async function loadCatalogue(options: LoadOptions): Promise<LoadResult> {
  const { client, source, survey, position, batchSize, inFlight, onLoaded } = options
  const totals = { created: 0, updated: 0, replayed: 0, problems: [] as string[] }

  async function write(objectKey: string, batch: number, items: readonly object[]): Promise<readonly BatchResult[]> {
    const answer = await client.post<{ results: BatchResult[] }>(
      `/objects/${objectKey}/records:batch`,
      { items },
      `debian-catalogue-${position.loadId}-${objectKey}-${batch}`,
    )
    if (answer.replayed) totals.replayed++
    for (const { index, status, error } of answer.body.results) {
      if (error) totals.problems.push(`${objectKey} ${batch * batchSize + index + 1}: ${tell(error)}`)
      else if (status === 201) totals.created++
      else totals.updated++
    }
    return answer.body.results
  }

  const maintainerIds = new Map<string, string>()
  for (let batch = 0; batch * batchSize < survey.maintainers.length; batch++) {
    const maintainers = survey.maintainers.slice(batch * batchSize, (batch + 1) * batchSize)
    const results = await write('maintainer', batch, maintainers.map(maintainerItem))
    for (const { index, record } of results) if (record) maintainerIds.set(maintainers[index]!.email, record.recordId)
    onLoaded(maintainers.length)
  }

  // One generator, drawn from by several writers: each takes the next batch when its last one is answered.
  const batches = batchesOf(source, survey, batchSize)
  const writer = async () => {
    for await (const { number, packages } of batches) {
      if (position.isDone(number)) continue
      const items = packages.map((found) => packageItem(found, maintainerIds))
      await write('package', number, items)
      await position.done(number)
      onLoaded(packages.length)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, writer))
  return totals
}

function maintainerItem({ name, email }: Maintainer): object {
  return { operation: 'upsert', externalKey: email, fields: { name, email } }
}

function packageItem({ name, maintainer, fields }: DebianPackage, ids: ReadonlyMap<string, string>): object {
  const maintainerId = (maintainer && ids.get(maintainer.email)) ?? null
  return { operation: 'upsert', externalKey: name, fields: { ...fields, maintainer: maintainerId } }
}

function tell({ code, error, details = [] }: ApiError): string {
  return [`${code}: ${error}`, ...details.map((detail) => `${detail.field}: ${detail.message}`)].join(' ')
}
