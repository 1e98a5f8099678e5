import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createAccount } from '../test/support/accounts.ts'
import { createTestDatabase, urlOf } from '../test/support/database.ts'
import { insertApplication } from './features/platform/applications/store.ts'

/** The command as people run it: a process of its own, beside a service in another, and without one. */
let root: string
let dataDir: string
let port: number
let service: ChildProcess | undefined

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pmodel-'))
  await chmod(root, 0o711) // PostgreSQL's account has to pass through
  dataDir = join(root, 'data')
  port = await freePort()
})

afterAll(async () => {
  await stopService()
  await rm(root, { recursive: true, force: true, maxRetries: 5 })
})

describe('beside a running service', () => {
  it('adds what the document has, says so, and the service knows it with its next request', async () => {
    await startService()
    expect(await objectKeys()).toEqual(['company', 'deal'])
    const file = await write('widget.json', model('widget', ['name', 'colour']))

    expect(await apply(file)).toEqual({
      code: 0,
      output: `Applied ${file} to acme-crm.\n  object added: widget: name (text), colour (text)\n`,
    })
    expect(await objectKeys()).toEqual(['company', 'deal', 'widget'])
    expect((await apply(file)).output).toContain('no object or field was missing')
  })

  it('adds fields to objects that exist, and sets the permissions of roles', async () => {
    const document = model('widget', ['name', 'colour', 'weight'])
    const roles = { support: { label: 'Support', objects: { widget: { read: true } } } }
    const file = await write('more.json', { ...document, roles })

    expect(await objectKeys('support')).toEqual(['company', 'deal'])
    expect((await apply(file)).output).toContain(
      '  fields added to widget: weight (text)\n  permissions set for: support\n',
    )
    expect(await objectKeys('support')).toEqual(['company', 'deal', 'widget'])
  })

  it('leaves an entry in the audit log of the account for each release', async () => {
    const { baseUrl, builder, apps } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
    const response = await fetch(`${baseUrl}/v1/platform/audit?saasAppId=${apps[0].saasAppId}`, {
      headers: { authorization: `Bearer ${builder.token}` },
    })
    const { items } = (await response.json()) as { items: { action: string; actor: object; after: object }[] }
    const terminal = { kind: 'system', id: 'terminal' }
    expect(items.map(({ action, actor }) => ({ action, actor }))).toEqual(
      Array.from({ length: 3 }, () => ({ action: 'model_release.published', actor: terminal })),
    )
    expect(items[1]!.after).toEqual({ releaseNumber: 2, changes: ['objects/widget added'] })
  })

  it('says where a file is wrong, and changes nothing', async () => {
    const broken = await write('broken.json', '{\n  "objects": [,]\n}')
    const misfit = await write('misfit.json', { objects: [{ ...model('gadget', ['name']).objects[0], colour: 'red' }] })
    const typo = await write('typo.json', { objects: [{ ...model('gadget', ['name']).objects[0], nameField: 'nmae' }] })

    expect(await apply(broken)).toEqual({ code: 1, output: `${broken} is not valid JSON: line 2, column 15.\n` })
    expect((await apply(misfit)).output).toBe(
      'The file is not a model document:\n  objects[0].colour: There is no such field.\n',
    )
    expect((await apply(typo)).output).toBe(
      'The model cannot be applied:\n  gadget: the name field nmae is not among its fields.\n',
    )
    expect((await apply('/no/such/file')).output).toContain('/no/such/file cannot be read: ENOENT')
    expect(await objectKeys()).toEqual(['company', 'deal', 'widget'])
  })

  it('names the applications that there are when it is asked for another', async () => {
    const file = await write('widget.json', model('widget', ['name']))
    expect(await apply(file, 'acme')).toEqual({
      code: 1,
      output: 'There is no application acme. Applications here: acme-crm, globex-desk.\n',
    })
    expect((await run(['apply', file])).output).toMatch(
      /^Usage: npm run model -- apply <file.json> --app <appKey or id>/,
    )
  })
})

describe('without a service', () => {
  it('starts the database for itself, and ends it', async () => {
    await stopService()
    const { code, output } = await apply(await write('gizmo.json', model('gizmo', ['name'])))
    expect(output).toContain('Starting PostgreSQL')
    expect(output).toContain('object added: gizmo: name (text)')
    expect(code).toBe(0)
    await expect(readFile(join(dataDir, 'postgres', 'postmaster.pid'))).rejects.toThrow('ENOENT')

    await startService()
    expect(await objectKeys()).toEqual(['company', 'deal', 'gizmo', 'widget'])
  })

  it('does not make a database where there is none', async () => {
    const nowhere = join(root, 'nowhere')
    const file = await write('widget.json', model('widget', ['name']))
    const { code, output } = await run(['apply', file, '--app', 'acme-crm'], { PORTICO_DATA_DIR: nowhere })
    expect(output).toContain(`There is no database in ${nowhere}.`)
    expect(code).toBe(1)
    await expect(readFile(nowhere)).rejects.toThrow('ENOENT')
  })
})

describe('with DATABASE_URL', () => {
  it('applies to the server that it names', async () => {
    const test = await createTestDatabase()
    const { accountId } = await createAccount(test.database)
    const application = { appId: crypto.randomUUID(), accountId, appKey: 'elsewhere', name: 'Elsewhere' }
    await test.database.as('portico_owner', (tx) =>
      insertApplication(tx, { ...application, schemaName: 'app_0123456789ab' }, null),
    )
    const file = await write('widget.json', model('widget', ['name']))
    const url = urlOf(test.connection)
    const { code, output } = await run(['apply', file, '--app', 'elsewhere'], { DATABASE_URL: url })
    await test.drop()
    expect(output).toContain('object added: widget: name (text)')
    expect(code).toBe(0)
  })

  it('takes an id where several accounts have an application of that key', async () => {
    const test = await createTestDatabase()
    const appIds = [crypto.randomUUID(), crypto.randomUUID()].sort()
    for (const [index, appId] of appIds.entries()) {
      const { accountId } = await createAccount(test.database)
      const application = { appId, accountId, appKey: 'same', name: 'Same', schemaName: `app_00000000000${index}` }
      await test.database.as('portico_owner', (tx) => insertApplication(tx, application, null))
    }
    const file = await write('widget.json', model('widget', ['name']))
    const environment = { DATABASE_URL: urlOf(test.connection) }
    const unclear = await run(['apply', file, '--app', 'same'], environment)
    const clear = await run(['apply', file, '--app', appIds[1]!], environment)
    await test.drop()
    expect(unclear).toEqual({
      code: 1,
      output: `Several accounts have an application same. Name the one that you mean by its id: ${appIds.join(', ')}.\n`,
    })
    expect(clear.output).toContain('object added: widget: name (text)')
  })

  it('says so when nothing of the service is there', async () => {
    const file = await write('widget.json', model('widget', ['name']))
    const { output } = await run(['apply', file, '--app', 'any'], {
      DATABASE_URL: urlOf({ ...inject('databaseServer').connection, database: 'postgres' }),
    })
    expect(output).toBe('The database holds no Portico yet. Start the service on it once.\n')
  })
})

function model(objectKey: string, fieldKeys: readonly string[]) {
  const fields = fieldKeys.map((fieldKey) => ({ fieldKey, label: fieldKey, dataType: 'text' }))
  return { objects: [{ objectKey, label: objectKey, pluralLabel: `${objectKey}s`, nameField: 'name', fields }] }
}

async function write(name: string, content: object | string): Promise<string> {
  const file = join(root, name)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

function apply(file: string, appKey = 'acme-crm') {
  return run(['apply', file, '--app', appKey])
}

/** Runs the command to its end. */
async function run(args: readonly string[], env: Record<string, string> = {}) {
  try {
    const command = [join(import.meta.dirname, 'model.ts'), ...args]
    const { stdout } = await promisify(execFile)(process.execPath, command, { env: environment(env) })
    return { code: 0, output: stdout }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, output: stdout + stderr }
  }
}

function environment(extra: Record<string, string> = {}): Record<string, string | undefined> {
  const { DATABASE_URL: _, ...inherited } = process.env
  return { ...inherited, PORTICO_DATA_DIR: dataDir, PORTICO_PORT: String(port), PORTICO_LOG_LEVEL: 'silent', ...extra }
}

async function startService(): Promise<void> {
  service = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], { env: environment(), stdio: 'ignore' })
  for (let attempt = 0; attempt < 400; attempt++) {
    if (service.exitCode !== null) throw new Error(`The service ended with code ${service.exitCode}.`)
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
    if (ready?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('The service did not become ready.')
}

async function stopService(): Promise<void> {
  if (!service || service.exitCode !== null) return
  service.kill('SIGTERM')
  await once(service, 'exit')
}

async function objectKeys(as: 'owner' | 'support' = 'owner'): Promise<string[]> {
  const demo = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  const [app] = demo.apps
  const response = await fetch(`${demo.baseUrl}/v1/apps/${app.saasAppId}/objects`, {
    headers: { authorization: `Bearer ${app.organizations[0].users[as].token}` },
  })
  const { objects } = (await response.json()) as { objects: { objectKey: string; kind: string }[] }
  return objects.filter(({ kind }) => kind === 'custom').map((object) => object.objectKey)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
