import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort, makeRoot, removeRoot, ServiceProcess } from '../../acceptance/support/service.ts'
import { compareVersions, packageOf } from './catalogue.ts'
import { readStanzas, type Stanza } from './control-file.ts'

const here = import.meta.dirname
/** 318 stanzas, 300 names: some come in two versions, some for two architectures. */
const fixture = join(here, 'fixture/Packages')

async function stanzasOf(pieces: Iterable<string | Buffer>): Promise<Stanza[]> {
  async function* arriving() {
    yield* pieces
  }
  const stanzas: Stanza[] = []
  for await (const stanza of readStanzas(arriving())) stanzas.push({ ...stanza })
  return stanzas
}

describe('the index', () => {
  it('is read the same however it arrives in pieces', async () => {
    const bytes = Buffer.from((await readFile(fixture, 'utf8')).slice(0, 4000))
    const read = (size: number) => {
      const count = Math.ceil(bytes.length / size)
      return stanzasOf(Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size)))
    }
    const whole = await read(1_000_000)
    expect(whole.length).toBeGreaterThan(5)
    for (const size of [1, 2, 7, 100]) expect(await read(size)).toEqual(whole)
  })

  it('may have Windows line ends, several empty lines, and lines that are not its own', async () => {
    const text = '\n# note\r\nPackage: a\r\nVersion: 1\r\n\r\n\r\n\nPackage: b\nDescription: one\n two\n .\n three'
    expect(await stanzasOf([text])).toEqual([
      { Package: 'a', Version: '1' },
      { Package: 'b', Description: 'one\ntwo\n.\nthree' },
    ])
  })

  it('becomes packages, without what their fields would refuse', () => {
    const found = packageOf({
      Package: 'quill',
      Version: '1.2-3',
      Architecture: 'all',
      Maintainer: '"Farrow, Benno" <Benno@Farrow.example>',
      Description: 'pen\nFor letters.\n.\nAnd notes.',
      Homepage: 'gopher://quill.example/1',
      Priority: 'urgent',
      'Installed-Size': '12',
    })
    expect(found).toEqual({
      name: 'quill',
      maintainer: { name: 'Farrow, Benno', email: 'benno@farrow.example' },
      fields: {
        name: 'quill',
        version: '1.2-3',
        source: 'quill',
        section: null,
        priority: null,
        architecture: 'all',
        installedSize: 12,
        downloadSize: null,
        homepage: null,
        summary: 'pen',
        description: 'pen\nFor letters.\n\nAnd notes.',
        dependencies: null,
      },
    })
    expect(packageOf({ Origin: 'Debian' })).toBeUndefined()
  })

  it('orders versions as Debian Policy does', () => {
    const ascending = [
      '0.9',
      '1.0~~',
      '1.0~rc1-1',
      '1.0',
      '1.0-1',
      '1.0-1+b1',
      '1.0-2',
      '1.0a',
      '1.0+dfsg',
      '1.9',
      '1.10',
    ]
    for (const [index, version] of ascending.entries()) {
      expect(compareVersions(version, version)).toBe(0)
      for (const later of ascending.slice(index + 1)) {
        expect(compareVersions(version, later), `${version} < ${later}`).toBeLessThan(0)
        expect(compareVersions(later, version), `${later} > ${version}`).toBeGreaterThan(0)
      }
    }
    expect(compareVersions('1:0.1', '9.9')).toBeGreaterThan(0)
    expect(compareVersions('20240101123456789012345678', '20240101123456789012345679')).toBeLessThan(0)
  })
})

describe('the load', () => {
  let root: string
  let service: ServiceProcess
  let statePath: string

  beforeAll(async () => {
    root = await makeRoot()
    const dataDir = join(root, 'data')
    statePath = join(dataDir, 'debian-catalogue.json')
    service = new ServiceProcess({ dataDir, port: await freePort() })
    await service.untilReady()
  })
  afterAll(async () => {
    await service?.stop()
    await removeRoot(root)
  })

  const options = ['--file', fixture, '--batch-size', '5', '--in-flight', '3', '--phrase', 'pencil']
  const environment = () => ({ ...process.env, PORTICO_DATA_DIR: service.dataDir })

  async function run(script: string, ...args: string[]): Promise<{ code: number; output: string }> {
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env: environment() })
      return { code: 0, output: stdout }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
      return { code, output: stdout + stderr }
    }
  }
  const load = (...args: string[]) => run(join(here, 'main.ts'), ...options, ...args)

  /** Every package that is there, by name; the names come as often as there are records of them. */
  async function packages(): Promise<{ name: string; version: string; revision: number }[]> {
    const { apps } = await service.demo()
    const url = `${service.baseUrl}/v1/apps/${apps[0]!.saasAppId}/objects/package/records/search`
    const found: { name: string; version: string; revision: number }[] = []
    for (let page = 1, more = true; more; page++) {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apps[0]!.organizations[0]!.credentials.live}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ page, pageSize: 200, sort: 'name_asc' }),
      })
      const body = (await response.json()) as {
        records: { revision: number; fields: { name: string; version: string } }[]
        hasMore: boolean
      }
      found.push(...body.records.map(({ fields, revision }) => ({ ...fields, revision })))
      more = body.hasMore
    }
    return found
  }

  it('asks for the objects where they are missing', async () => {
    const { code, output } = await load()
    expect(code).toBe(1)
    expect(output).toContain('npm run model -- apply examples/debian-catalogue/model.json --app acme-crm')
    const model = join(here, '../../server/src/model.ts')
    const applied = await run(model, 'apply', join(here, 'model.json'), '--app', 'acme-crm')
    expect(applied.output).toContain('object added: package')
  })

  it('goes on after it was killed, and doubles nothing', async () => {
    const child = spawn(process.execPath, [join(here, 'main.ts'), ...options], { env: environment(), stdio: 'ignore' })
    const doneAtKill = await killAfter(child, 10)
    expect(doneAtKill).toBeLessThan(60)
    const partly = await packages()
    expect(partly.length).toBeGreaterThanOrEqual(50)
    expect(partly.length).toBeLessThan(300)

    const { code, output } = await load()
    expect(output).toMatch(/Continuing after \d+ of 60 batches/)
    expect(code).toBe(0)
    await expectWhole()
  })

  /** Kills the load when its state file tells of that many batches; resolves to how many it told of at last. */
  async function killAfter(child: ChildProcess, batches: number): Promise<number> {
    const done = async () => {
      const state = await readFile(statePath, 'utf8').catch(() => '{"below":0,"also":[]}')
      const { below, also } = JSON.parse(state) as { below: number; also: number[] }
      return below + also.length
    }
    while (child.exitCode === null && (await done()) < batches) await pause(1)
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return done()
  }

  async function expectWhole(): Promise<void> {
    const found = await packages()
    expect(found).toHaveLength(300)
    expect(new Set(found.map(({ name }) => name)).size).toBe(300)
    expect(found.every(({ revision }) => revision === 1)).toBe(true)
    // Never the older of two versions.
    expect(found.filter(({ version }) => version === '0.0.1-1')).toEqual([])
  }

  it('does no batch twice whose answer was lost', async () => {
    const state = JSON.parse(await readFile(statePath, 'utf8'))
    await writeFile(statePath, JSON.stringify({ ...state, below: 40 }))
    const { output } = await load()
    expect(output).toContain('Continuing after 40 of 60 batches')
    // 20 of packages, and the two of maintainers that every load sends first.
    expect(output).toContain('22 batches had been written before their answer was lost')
    await expectWhole()
  })

  it('answers five questions, as the index itself does', async () => {
    const { code, output } = await load()
    expect(code).toBe(0)
    expect(output).toContain('loaded before')
    expect(output).not.toContain('the index has')
    expect(output.match(/^\d\. /gm)).toEqual(['1. ', '2. ', '3. ', '4. ', '5. '])
    expect(output).toContain('   93 packages in all') // of the busiest maintainer
    expect(output).toMatch(/ 96 {2}libs\n {3}63 {2}utils\n {3}60 {2}games\n/)
    expect(output).toMatch(/MiB {2}fennel-mortar, Tomasz Żuraw/)
    expect(output.match(/ms at first/g)).toHaveLength(5)
  })

  it('brings up to date what has changed since', async () => {
    const changed = join(service.dataDir, 'Packages')
    const text = await readFile(fixture, 'utf8')
    await writeFile(
      changed,
      text.replace('Package: amber-easel\nVersion: 2.14-5', 'Package: amber-easel\nVersion: 2.14-6'),
    )
    const { output } = await run(join(here, 'main.ts'), '--file', changed)
    expect(output).toContain('0 created, 307 brought up to date')
    const found = await packages()
    expect(found.filter(({ revision }) => revision > 1)).toMatchObject([{ name: 'amber-easel', version: '2.14-6' }])
    expect(found).toHaveLength(300)
  })
})
