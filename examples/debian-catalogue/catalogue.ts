import type { Stanza } from './control-file.ts'

/** What the catalogue keeps of a package, and of those who look after it. */
export interface Maintainer {
  readonly name: string
  readonly email: string
}

export interface DebianPackage {
  readonly name: string
  readonly maintainer: Maintainer | undefined
  /** Values by field key of the object `package`, without the reference. */
  readonly fields: Readonly<Record<string, unknown>>
}

const priorities = new Set(['required', 'important', 'standard', 'optional', 'extra'])
/** The limits of the field types; see the schema of the object. */
const textMax = 2000
const longTextMax = 100_000

/** Undefined for a stanza that is no package, for instance that of a release file. */
export function packageOf(stanza: Stanza): DebianPackage | undefined {
  const { Package: name, Version: version, Architecture: architecture } = stanza
  if (!name || !version || !architecture) return undefined
  // Indices without translations carry the summary alone; others carry the long text below it.
  const description = stanza['Description'] ?? stanza['Description-en'] ?? ''
  return {
    name,
    maintainer: maintainerOf(stanza['Maintainer']),
    fields: {
      name,
      version,
      source: stanza['Source']?.replace(/ \(.*\)$/, '') ?? name,
      section: stanza['Section'] ?? null,
      priority: priorities.has(stanza['Priority'] ?? '') ? stanza['Priority'] : null,
      architecture,
      installedSize: sizeOf(stanza['Installed-Size']),
      downloadSize: sizeOf(stanza['Size']),
      homepage: homepageOf(stanza['Homepage']),
      summary: description.split('\n', 1)[0]!.slice(0, textMax) || null,
      description: paragraphs(description).slice(0, longTextMax) || null,
      dependencies: stanza['Depends']?.slice(0, longTextMax) ?? null,
    },
  }
}

/** `Ada Lovelace <ada@example.org>`. The address is the key: people write their names in more than one way. */
function maintainerOf(text: string | undefined): Maintainer | undefined {
  const [, name = '', email = ''] = /^(.*?)\s*<([^<>\s]+@[^<>\s]+)>/.exec(text ?? '') ?? []
  if (email === '') return undefined
  return { name: name.replace(/^"(.*)"$/, '$1') || email, email: email.toLowerCase() }
}

function sizeOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null
}

/** The field takes addresses of the web; a few packages still live on FTP and Gopher. */
function homepageOf(text: string | undefined): string | null {
  return text !== undefined && URL.canParse(text) && /^https?:/i.test(text) ? text : null
}

/** In long descriptions a line with a single full stop stands for an empty one. */
function paragraphs(description: string): string {
  return description.replaceAll(/\n\.(?=\n|$)/g, '\n')
}

/**
 * Compares versions as Debian Policy 5.6.12 orders them: the epoch, then the upstream version, then the revision; in
 * each, runs of digits as numbers, everything else with `~` before the end and letters before other signs.
 */
export function compareVersions(a: string, b: string): number {
  const [epochA, upstreamA, revisionA] = partsOf(a)
  const [epochB, upstreamB, revisionB] = partsOf(b)
  return epochA - epochB || comparePart(upstreamA, upstreamB) || comparePart(revisionA, revisionB)
}

function partsOf(version: string): [epoch: number, upstream: string, revision: string] {
  const [, epoch = '0', rest = ''] = /^(?:(\d+):)?(.*)$/s.exec(version) ?? []
  const dash = rest.lastIndexOf('-')
  return dash < 0 ? [Number(epoch), rest, ''] : [Number(epoch), rest.slice(0, dash), rest.slice(dash + 1)]
}

function comparePart(a: string, b: string): number {
  const runsOf = (text: string) => text.match(/\d+|\D+/g) ?? []
  // A part that starts with digits has an empty run of signs before them.
  const [left, right] = [a, b].map((text) => (/^\d/.test(text) ? ['', ...runsOf(text)] : runsOf(text)))
  for (let index = 0; index < Math.max(left!.length, right!.length); index++) {
    const [one = '', other = ''] = [left![index], right![index]]
    const order = index % 2 === 1 ? compareNumbers(one, other) : compareSigns(one, other)
    if (order !== 0) return order
  }
  return 0
}

/** Longer than a double is exact: some versions are dates with a time. */
function compareNumbers(a: string, b: string): number {
  const difference = BigInt(a || '0') - BigInt(b || '0')
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

function compareSigns(a: string, b: string): number {
  const rank = (sign: string | undefined) => {
    if (sign === undefined) return 0
    if (sign === '~') return -1
    return /[a-z]/i.test(sign) ? sign.charCodeAt(0) : sign.charCodeAt(0) + 256
  }
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const difference = rank(a[index]) - rank(b[index])
    if (difference !== 0) return difference
  }
  return 0
}
