import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { explainMissingSchema, openCommandServer } from './command-database.ts'
import { ConfigError, readConfig } from './config.ts'
import { findApplications } from './features/platform/applications/store.ts'
import { Failure } from './kernel/errors.ts'
import { nativeModules } from './native-modules.ts'
import { DatabaseServerError } from './ports/database/port.ts'
import { type ApplicationModel, readModel } from './shared/catalogue/catalogue.ts'
import { type Database, openDatabase } from './shared/database/database.ts'
import { applyModel, ModelError } from './shared/modelling/apply.ts'
import type { ModelDocument } from './shared/modelling/document.ts'
import { failurePosition } from './surfaces/http/json-position.ts'

/**
 * `npm run model -- apply <file.json> --app <appKey>`: brings an application to a model document kept in a file. Works
 * beside a running service, which takes the new model up with its next request, and without one.
 */
const usage = `Usage: npm run model -- apply <file.json> --app <appKey or id>

Adds to the application the objects, fields, roles, relationships and locations of the document that it does not have yet,
sets the permissions of the roles that the document names, and keeps a release of it. Nothing is removed. The database is that of the service: DATABASE_URL, or the one
under PORTICO_DATA_DIR (default ./data), whether the service runs or not.`

/** Told in a sentence, without a stack: the person who runs the command can mend it. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

async function main(): Promise<void> {
  const { file, appKey } = readArguments()
  const document = await readDocument(file)
  const server = await openCommandServer(readConfig(), say)
  const database = openDatabase({ connection: server.connection, poolSize: 2 })
  try {
    const appId = await findApplication(database, appKey)
    const before = await modelOf(database, appId)
    await applyModel(database, appId, document, nativeModules.behaviours)
    const after = await modelOf(database, appId)
    say(`Applied ${file} to ${appKey}.`)
    for (const line of additions(before, after, document)) say(`  ${line}`)
    const failed = failedIndexes(after)
    if (failed.length > 0) throw new ModelError(failed.join('\n'))
  } finally {
    await database.close()
    await server.stop()
  }
}

function readArguments(): { file: string; appKey: string } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { app: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    })
    if (values.help) {
      say(usage)
      process.exit(0)
    }
    const [command, file, ...rest] = positionals
    if (command === 'apply' && file !== undefined && rest.length === 0 && values.app)
      return { file, appKey: values.app }
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
  throw new UsageError(usage)
}

async function readDocument(file: string): Promise<ModelDocument> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new UsageError(`${file} cannot be read: ${error.message}.`)
  })
  try {
    return JSON.parse(text)
  } catch {
    const before = text.slice(0, failurePosition(text)).split('\n')
    throw new UsageError(`${file} is not valid JSON: line ${before.length}, column ${before.at(-1)!.length + 1}.`)
  }
}

/** By key, or by id where several accounts use the key. */
async function findApplication(database: Database, wanted: string): Promise<string> {
  const applications = await database.as('portico_owner', findApplications)
  const found = applications.filter(({ appId, appKey }) => appKey === wanted || appId === wanted.toLowerCase())
  if (found.length === 1) return found[0]!.appId
  if (found.length > 1) {
    const ids = found.map(({ appId }) => appId).join(', ')
    throw new UsageError(
      `Several accounts have an application ${wanted}. Name the one that you mean by its id: ${ids}.`,
    )
  }
  const known = [...new Set(applications.map(({ appKey }) => appKey))].join(', ') || 'none yet'
  throw new UsageError(`There is no application ${wanted}. Applications here: ${known}.`)
}

function modelOf(database: Database, appId: string): Promise<ApplicationModel> {
  return database.as('portico_owner', (tx) => readModel(tx, appId, ''))
}

/** What the document brought, one line each. */
function additions(before: ApplicationModel, after: ApplicationModel, document: ModelDocument): string[] {
  const lines = after.objects.flatMap((object) => {
    const known = before.byKey.get(object.objectKey)
    const fields = object.fields.filter((field) => !known?.fieldsByKey.has(field.fieldKey))
    if (fields.length === 0) return []
    const names = fields.map((field) => `${field.fieldKey} (${field.dataType})`).join(', ')
    return [`${known ? 'fields added to' : 'object added:'} ${object.objectKey}: ${names}`]
  })
  if (lines.length === 0) lines.push('no object or field was missing')
  const roles = Object.keys(document.roles ?? {})
  return roles.length === 0 ? lines : [...lines, `permissions set for: ${roles.join(', ')}`]
}

/** An index that cannot be built leaves its field usable and slow, or not unique: that must not pass in silence. */
function failedIndexes(model: ApplicationModel): string[] {
  return model.objects.flatMap((object) =>
    object.fields
      .filter((field) => field.indexState === 'failed')
      .map((field) =>
        field.unique
          ? `${object.objectKey}.${field.fieldKey} is not unique: records share a value. Mend them and apply again.`
          : `The index of ${object.objectKey}.${field.fieldKey} could not be built. Apply again.`,
      ),
  )
}

function explain(error: unknown): string {
  if (error instanceof UsageError || error instanceof ConfigError || error instanceof DatabaseServerError) {
    return error.message
  }
  if (error instanceof ModelError) return `The model cannot be applied:\n${indent(error.message.split('\n'))}`
  if (error instanceof Failure && error.details) {
    const problems = error.details.map((detail) => `${detail.field}: ${detail.message}`)
    return `The file is not a model document:\n${indent(problems)}`
  }
  if (error instanceof Failure) return `${error.message}${error.cause ? ` (${(error.cause as Error).message})` : ''}`
  return explainMissingSchema(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}`).join('\n')
}

// Whoever reads the output may have seen enough; the work goes on.
process.stdout.on('error', () => {})

main().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
})
