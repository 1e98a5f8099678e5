import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg, totalmem } from 'node:os'
import type { LoadResult } from './load.ts'
import type { Measure } from './measures.ts'

/** Rounds of one measure, and what is said of them. */
export interface Rounds {
  readonly measure: Measure
  readonly service: readonly LoadResult[]
  readonly baseline: readonly LoadResult[]
}

export interface Figures {
  readonly measure: string
  readonly unit: 'requests/s' | 'records/s'
  readonly service: Side
  readonly baseline: Side
  /** Of the medians. */
  readonly ratio: number
  readonly ratioMin: number | null
  /** Of single rounds: how far the figures can be trusted. */
  readonly ratioLowest: number
  readonly ratioHighest: number
}

interface Side {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly bytesPerAnswer: number
}

export function figuresOf({ measure, service, baseline }: Rounds): Figures {
  const each = measure.recordsEach ?? 1
  const ours = sideOf(service, each)
  const bare = sideOf(baseline, each)
  const ratios = service.map((result, round) => result.requestsPerSecond / baseline[round]!.requestsPerSecond)
  return {
    measure: measure.name,
    unit: each === 1 ? 'requests/s' : 'records/s',
    service: ours,
    baseline: bare,
    ratio: rounded(ours.perSecond / bare.perSecond, 3),
    ratioMin: measure.ratioMin ?? null,
    ratioLowest: rounded(Math.min(...ratios), 3),
    ratioHighest: rounded(Math.max(...ratios), 3),
  }
}

function sideOf(results: readonly LoadResult[], each: number): Side {
  const of = (read: (result: LoadResult) => number) => median(results.map(read))
  return {
    perSecond: Math.round(of((result) => result.requestsPerSecond) * each),
    p50Ms: rounded(
      of((result) => result.p50Ms),
      2,
    ),
    p99Ms: rounded(
      of((result) => result.p99Ms),
      2,
    ),
    bytesPerAnswer: of((result) => result.bytesPerAnswer),
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

export function table(rows: readonly Figures[]): string {
  const head = ['', 'service/s', 'p50 ms', 'p99 ms', 'baseline/s', 'p50 ms', 'p99 ms', 'ratio', 'must', 'rounds']
  const cells = rows.map(({ measure, unit, service, baseline, ratio, ratioMin, ...spread }) => [
    unit === 'records/s' ? `${measure} (records)` : measure,
    ...[service, baseline].flatMap((side) => [side.perSecond, side.p50Ms, side.p99Ms].map(String)),
    ratio.toFixed(2),
    ratioMin === null ? '' : `≥ ${ratioMin}`,
    `${spread.ratioLowest.toFixed(2)} … ${spread.ratioHighest.toFixed(2)}`,
  ])
  return aligned([head, ...cells])
}

export function aligned(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map((line) => line.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join('  '))
    .join('\n')
}

/** Writes what a run found, with the machine that it found it on. The last run of a day stays. */
export async function keepResults(name: string, content: object): Promise<string> {
  const folder = new URL('./results/', import.meta.url)
  await mkdir(folder, { recursive: true })
  const now = new Date().toISOString()
  const machine = {
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? '',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    /** Of the last five minutes: above the number of processors others were at work too. */
    load: rounded(loadavg()[1]!, 1),
  }
  const file = new URL(`${now.slice(0, 10)}${name}.json`, folder)
  const text = JSON.stringify({ at: now, node: process.version, machine, ...content }, null, 2)
  await writeFile(file, `${text}\n`)
  return file.pathname
}
