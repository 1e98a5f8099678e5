import { Client, Refusal } from './client.ts'
import { type LoadResult, loadCatalogue } from './load.ts'
import { type Options, readOptions, UsageError, usage } from './options.ts'
import { openPosition, type Position } from './position.ts'
import { number, startProgress } from './progress.ts'
import { askQuestions } from './questions.ts'
import { openSource, type Source, type Survey, survey } from './source.ts'

/** A catalogue of Debian packages on Portico: reads the index, loads it, asks five questions. See README.md. */
const say = (line: string) => void process.stdout.write(`${line}\n`)
const problemsShown = 10

async function main(): Promise<void> {
  const args = process.argv.slice(2)
  if (args.includes('--help')) return say(usage)
  const options = await readOptions(args)
  const client = new Client(options.api)
  await requireModel(client, options)

  const source = openSource(options.file)
  say(`Reading ${source.name} …`)
  const found = await survey(source)
  if (found.count === 0) throw new UsageError(`There are no packages in ${source.name}. Try apt-get update.`)
  say(`  ${number(found.count)} packages, ${number(found.maintainers.length)} maintainers`)

  const ok = await load(client, source, found, options)
  await askQuestions({ client, survey: found, phrase: options.phrase, words: options.words }, say)
  if (!ok) process.exitCode = 1
}

/** The objects are made by the builder of the application, not by its clients. */
async function requireModel(client: Client, { appKey, api }: Options): Promise<void> {
  const { body } = await client.get<{ objects: { objectKey: string }[] }>('/objects')
  const missing = ['maintainer', 'package'].filter((key) => !body.objects.some((object) => object.objectKey === key))
  if (missing.length === 0) return
  throw new UsageError(
    `The application ${appKey} at ${api.baseUrl} has no object ${missing.join(', ')}. Add them where the service runs:\n\n` +
      `  npm run model -- apply examples/debian-catalogue/model.json --app ${appKey}`,
  )
}

/** Loads what is not loaded yet. False when the service refused some of it. */
async function load(client: Client, source: Source, found: Survey, options: Options): Promise<boolean> {
  const { api, batchSize, statePath, reload } = options
  const plan = [api.baseUrl, api.saasAppId, batchSize, found.fingerprint, ...(reload ? [Date.now()] : [])].join(' ')
  const position = await openPosition(statePath, plan)
  const batchCount = Math.ceil(found.count / batchSize)
  const done = countDone(position, batchCount)
  if (done === batchCount) {
    say('  loaded before; --reload loads it again')
    return true
  }
  if (position.resumed) say(`Continuing after ${number(done)} of ${number(batchCount)} batches …`)
  else say(`Loading into ${options.appKey} at ${api.baseUrl} …`)

  const total = found.count + found.maintainers.length
  const progress = startProgress(process.stdout, { total, done: done * batchSize })
  const started = performance.now()
  const { inFlight } = options
  const result = await loadCatalogue({
    client,
    source,
    survey: found,
    position,
    batchSize,
    inFlight,
    onLoaded: progress.add,
  })
  progress.end()
  tell(result, performance.now() - started, batchSize * inFlight)
  return result.problems.length === 0
}

function countDone(position: Position, batchCount: number): number {
  let done = 0
  for (let batch = 0; batch < batchCount; batch++) if (position.isDone(batch)) done++
  return done
}

function tell({ created, updated, replayed, problems }: LoadResult, elapsedMs: number, atOnce: number): void {
  const refused = problems.length > 0 ? `, ${number(problems.length)} refused` : ''
  const again = replayed > 0 ? `; ${replayed} batches had been written before their answer was lost` : ''
  say(`  ${number(created)} created, ${number(updated)} brought up to date${refused}${again}`)
  const rate = (created + updated) / (elapsedMs / 1000)
  say(`  ${number(rate)} records/s, ${number(atOnce)} on their way at a time`)
  for (const problem of problems.slice(0, problemsShown)) say(`  refused: ${problem}`)
}

// Whoever reads the output may have seen enough: `| head`.
process.stdout.on('error', () => process.exit())

main().catch((error: unknown) => {
  const known = error instanceof UsageError || error instanceof Refusal
  process.stderr.write(`${known ? error.message : error instanceof Error ? error.stack : String(error)}\n`)
  process.exitCode = 1
})
