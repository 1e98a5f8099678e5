import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { compareVersions, type DebianPackage, type Maintainer, packageOf } from './catalogue.ts'
import { readStanzas } from './control-file.ts'

/** Where packages come from, and what a first reading tells about them. Every call of `read` starts from the beginning. */
export interface Source {
  readonly name: string
  read(): AsyncIterable<DebianPackage>
}

/** The index of the machine, from apt's own cache; or a file in the format of Debian's `Packages`. */
export function openSource(file: string | undefined): Source {
  const chunks = file === undefined ? dumpAvailable : () => createReadStream(file)
  return {
    name: file ?? 'apt-cache dumpavail',
    async *read() {
      for await (const stanza of readStanzas(chunks())) {
        const found = packageOf(stanza)
        if (found) yield found
      }
    },
  }
}

async function* dumpAvailable(): AsyncGenerator<Buffer> {
  const child = spawn('apt-cache', ['dumpavail'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const failed = new Promise<never>((_, reject) => {
    child.once('error', (cause) => reject(new Error('There is no apt-cache here: name a file with --file.', { cause })))
  })
  failed.catch(() => {})
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  yield* child.stdout
  const code = await Promise.race([ended, failed])
  if (code !== 0) throw new Error(`apt-cache dumpavail ended with code ${code}.`)
}

/** What is known after one reading: enough to show progress against, and to check the service's answers by. */
export interface Survey {
  /** Changes when anything in the index does. */
  readonly fingerprint: string
  /** How many packages there are, each name once. */
  readonly count: number
  readonly maintainers: readonly Maintainer[]
  readonly bySection: ReadonlyMap<string, number>
  readonly byMaintainer: ReadonlyMap<string, number>
  /** Is the n-th package of the reading the one to keep of its name? */
  keeps(ordinal: number): boolean
}

interface Candidate {
  readonly ordinal: number
  readonly version: string
  readonly section: string | null
  readonly email: string | undefined
}

/**
 * An index may name a package more than once: in several versions (a release and its security updates), and for several
 * architectures. The newest version is kept, and of equal ones the first.
 */
export async function survey(source: Source): Promise<Survey> {
  const candidates = new Map<string, Candidate>()
  const maintainers = new Map<string, Maintainer>()
  const hash = createHash('sha256')
  let ordinal = 0
  for await (const { name, maintainer, fields } of source.read()) {
    hash.update(JSON.stringify([fields, maintainer]))
    if (maintainer && !maintainers.has(maintainer.email)) maintainers.set(maintainer.email, maintainer)
    const version = fields['version'] as string
    const known = candidates.get(name)
    if (!known || compareVersions(version, known.version) > 0) {
      candidates.set(name, { ordinal, version, section: fields['section'] as string | null, email: maintainer?.email })
    }
    ordinal++
  }
  const kept = [...candidates.values()]
  const ordinals = new Set(kept.map((candidate) => candidate.ordinal))
  return {
    fingerprint: hash.digest('hex'),
    count: kept.length,
    maintainers: [...maintainers.values()],
    bySection: counted(kept.map((candidate) => candidate.section ?? undefined)),
    byMaintainer: counted(kept.map((candidate) => candidate.email)),
    keeps: (index) => ordinals.has(index),
  }
}

/** How often each occurs, the most frequent first. */
function counted(values: readonly (string | undefined)[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1)
  return new Map([...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)))
}

/** The packages to load, in batches that are the same at every reading. */
export async function* batchesOf(
  source: Source,
  { keeps }: Survey,
  size: number,
): AsyncGenerator<{ readonly number: number; readonly packages: readonly DebianPackage[] }> {
  let number = 0
  let ordinal = 0
  let packages: DebianPackage[] = []
  for await (const found of source.read()) {
    if (!keeps(ordinal++)) continue
    packages.push(found)
    if (packages.length < size) continue
    yield { number: number++, packages }
    packages = []
  }
  if (packages.length > 0) yield { number, packages }
}
