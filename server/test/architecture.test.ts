import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import { expect, test } from 'vitest'

/** The import rules of architecture.md, held over `server/src`. `violationsOf` is pure, so that it can be shown to fail. */
type Sources = ReadonlyMap<string, string>

/** Files that put the parts together, and may therefore import any of them; tests and what supports them also do. */
const composition =
  /^(main|demo|generate|model|keys-command|entitlements-command|account-command|key-management|command-database)\.ts$/
const tests = /(\.test|(^|\/)testing|-test-support|(^|\/)conformance)\.ts$/
const pureModules = /^(node:(crypto|buffer|util)|typebox)(\/|$)/
const port = /^ports\/[^/]+\/port\.ts$/

/** What a file may import, by the first rule whose `from` fits its path; `$1` is what the parentheses matched. */
const rules: readonly (readonly [from: RegExp, local: string, packages: RegExp])[] = [
  [/^kernel\//, '^kernel/', pureModules],
  [port, '^kernel/', pureModules],
  [/^(ports\/[^/]+)\//, '^(kernel|$1)/', /./],
  [/^shared\//, '^(kernel|shared)/', /./],
  [/^(features\/[^/]+)\//, '^(kernel|shared|$1)/', /./],
  [/^(surfaces\/[^/]+)\//, '^(kernel/|$1/|operations\\.ts$)', /./],
  // The service is put together there, on adapters that `main.ts` chose.
  [/^service\.ts$/, '^(kernel/|shared/|surfaces/|ports/[^/]+/port\\.ts$|[^/]+\\.ts$)', /./],
  [/^[^/]+\.ts$/, '^(kernel/|shared/|features/|[^/]+\\.ts$)', /./],
]

/**
 * What may open a connection to somewhere else. Destinations that tenants choose are reached through safe-fetch alone; the
 * others speak to what the operator named: Vault, the mail server, name servers.
 */
const outward =
  /^(shared\/safe-fetch\/[^/]+|shared\/domain-ownership\.ts|ports\/mail\/smtp\.ts|ports\/key-management\/vault\/connection\.ts)$/
const outwardPackages = /^(undici|nodemailer|node:dgram|node:http2|node:dns(\/promises)?)$/

function violationsOf(sources: Sources): string[] {
  const found: string[] = []
  const graph = new Map<string, readonly string[]>()
  for (const [path, source] of sources) {
    const code = withoutComments(source)
    const resolved = (name: string) => (name.startsWith('.') ? normalize(join(dirname(path), name)) : name)
    const imports = importsOf(code).map(resolved)
    // Type imports are erased: they cannot make a cycle at run time, nor a pure module impure.
    const running = importsOf(code.replace(typeImport, '')).map(resolved)
    graph.set(path, running)
    for (const what of [...shapeBreaches(path, code), ...importBreaches(path, imports, running)]) {
      found.push(`${path} ${what}`)
    }
  }
  return [...found, ...cyclesOf(graph)]
}

function shapeBreaches(path: string, code: string): string[] {
  const isDrawer = /(^|\/)(utils?|helpers?|common|misc|lib)(\/|\.ts$)/.test(path)
  const isBarrel = /(^|\/)index\.ts$/.test(path) || /^\s*export\s+(type\s+)?[*{][^;'"]*\bfrom\b/m.test(code)
  const readsEnvironment = /\bprocess\.env\b|\benv\b[^;\n]*from 'node:process'/.test(code)
  return [
    ...(isDrawer ? ['is a drawer without a subject'] : []),
    ...(isBarrel ? ['is a barrel'] : []),
    ...(reachesOutside(code) && !outward.test(path) && !tests.test(path) ? ['reaches outside'] : []),
    ...(readsEnvironment && path !== 'config.ts' && !tests.test(path) ? ['reads the environment'] : []),
  ]
}

/** Servers and types of these modules are for everybody, clients are not. */
function reachesOutside(code: string): boolean {
  const running = code.replace(typeImport, '')
  const clients = /\b(connect|createConnection|Socket|TLSSocket|request|get|Agent)\b|^\s*(\*|\w)/
  const imports = [...running.matchAll(/^\s*import\s+([^'"]*?)\s*from\s*'node:(?:net|tls|https?)'/gm)]
  return (
    importsOf(running).some((name) => outwardPackages.test(name)) ||
    imports.some(([, names = '']) => clients.test(names.replace(/\btype\s+\w+/g, ''))) ||
    /(?<![.\w])(globalThis\.)?fetch\(|\bnew (WebSocket|EventSource)\(/.test(running)
  )
}

function importBreaches(path: string, imports: readonly string[], running: readonly string[]): string[] {
  const isBreach = (name: string) => {
    if (/^(fastify$|@fastify\/)/.test(name) && !path.startsWith('surfaces/http/')) return true
    if (composition.test(path) || tests.test(path)) return false
    const [from, local, packages] = rules.find(([pattern]) => pattern.test(path)) ?? [/$/, '$^', /$^/]
    if (!name.endsWith('.ts')) return running.includes(name) && !packages.test(name)
    if (port.test(name) && /^(shared|features)\//.test(path)) return false
    return !new RegExp(local.replaceAll('$1', from.exec(path)?.[1] ?? '')).test(name)
  }
  return imports.filter(isBreach).map((name) => `imports ${name}`)
}

/** Comments may say what they like; strings are kept, since imports are made of them. */
function withoutComments(source: string): string {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g
  return source.replace(token, (text) => (text.startsWith('/') ? '' : text))
}

const typeImport = /^\s*import type\b[^'"`;]*?\bfrom\s*'[^']+'/gm

function importsOf(code: string): string[] {
  const statement = /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*'([^']+)'|^\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm
  return [...code.matchAll(statement)].map((match) => (match[1] ?? match[2] ?? match[3])!)
}

function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]) => {
    if (trail.includes(path)) cycles.push(`cycle: ${[...trail.slice(trail.indexOf(path)), path].join(' → ')}`)
    if (trail.includes(path) || done.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return cycles
}

test('the source follows the import rules', () => {
  const root = new URL('../src/', import.meta.url)
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const sources = new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(new URL(path, root), 'utf8')]))
  expect(sources.size).toBeGreaterThan(30)
  expect(violationsOf(sources)).toEqual([])
})

test.each([
  ['kernel/a.ts', "import { readFile } from 'node:fs'", 'imports node:fs'],
  ['kernel/a.ts', "import type { X } from '../shared/x.ts'", 'imports shared/x.ts'],
  ['ports/blob/port.ts', "import { S3 } from '@aws-sdk/client-s3'", 'imports @aws-sdk/client-s3'],
  ['ports/blob/s3.ts', "import { x } from '../clock/port.ts'", 'imports ports/clock/port.ts'],
  ['shared/a.ts', "import { disk } from '../ports/blob/disk.ts'", 'imports ports/blob/disk.ts'],
  ['features/a/store.ts', "import { x } from '../b/rules.ts'", 'imports features/b/rules.ts'],
  ['features/a/store.ts', "import {\n  x,\n} from '../../surfaces/http/send.ts'", 'imports surfaces/http/send.ts'],
  ['surfaces/mcp/a.ts', "const x = await import('../../shared/log.ts')", 'imports shared/log.ts'],
  ['surfaces/mcp/a.ts', "import Fastify from 'fastify'", 'imports fastify'],
  ['operations.ts', "import { disk } from './ports/blob/disk.ts'", 'imports ports/blob/disk.ts'],
  ['service.ts', "import { disk } from './ports/blob/disk.ts'", 'imports ports/blob/disk.ts'],
  ['elsewhere/a.ts', "import { x } from '../kernel/x.ts'", 'imports kernel/x.ts'],
  ['main.ts', 'const home = process.env.HOME', 'reads the environment'],
  ['features/a/worker.ts', 'await fetch(url)', 'reaches outside'],
  ['features/a/worker.ts', 'await globalThis.fetch(url)', 'reaches outside'],
  ['features/a/worker.ts', "import { Pool } from 'undici'", 'reaches outside'],
  ['features/a/worker.ts', "import { type Server, request as send } from 'node:https'", 'reaches outside'],
  ['features/a/worker.ts', "import net from 'node:net'", 'reaches outside'],
  ['features/a/worker.ts', "import { lookup } from 'node:dns/promises'", 'reaches outside'],
  ['shared/index.ts', '', 'is a barrel'],
  ['shared/all.ts', "export { x } from './x.ts'", 'is a barrel'],
  ['shared/utils/text.ts', '', 'is a drawer without a subject'],
])('a breach in %s is found: %j', (path, source, breach) => {
  expect(violationsOf(new Map([[path, source]]))).toEqual([`${path} ${breach}`])
})

test('what the rules allow is allowed, and comments are not code', () => {
  const allowed = new Map([
    ['features/a/store.ts', "import { x } from '../../ports/blob/port.ts'\n// process.env, export * from './x.ts'"],
    ['features/a/worker.ts', "import { isIP, type Socket } from 'node:net'\nawait safe.fetch(url)\nprefetch(url)"],
    ['shared/safe-fetch/a.ts', "import { Pool } from 'undici'"],
    ['main.ts', "import { disk } from './ports/blob/disk.ts'\nimport { x } from './surfaces/http/x.ts'"],
    ['surfaces/http/x.ts', "/** import x from 'y' */ import Fastify from 'fastify'"],
  ])
  expect(violationsOf(allowed)).toEqual([])
})

test('a cycle is found', () => {
  const cycle = new Map([
    ['kernel/a.ts', "import { b } from './b.ts'"],
    ['kernel/b.ts', "import { c } from './c.ts'"],
    ['kernel/c.ts', "import { type a } from './a.ts'"],
    ['kernel/d.ts', "import type { d } from './d.ts'"],
  ])
  expect(violationsOf(cycle)).toEqual(['cycle: kernel/a.ts → kernel/b.ts → kernel/c.ts → kernel/a.ts'])
})
