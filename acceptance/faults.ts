import { availableParallelism, loadavg, release } from 'node:os'
import { parseArgs } from 'node:util'
import { proveDeliveries } from './faults/deliveries.ts'
import { Proving, type Round } from './faults/rounds.ts'

/**
 * `npm run test:faults -- [--kills 20] [--database-kills 3] [--stops 5] [--delivery-kills 20]`: kills a service under eight
 * writers, again and again, and holds what is there against what the writers were told, and what a receiver of webhooks got
 * against what is there. Prints the figures of docs/promises.md.
 */
const say = (line: string) => void process.stdout.write(`${line}\n`)
const ms = (value: number) => `${Math.round(value)} ms`

function readCounts() {
  const count = { type: 'string' } as const
  const { values } = parseArgs({
    options: { kills: count, 'database-kills': count, stops: count, 'delivery-kills': count },
  })
  const integer = (name: keyof typeof values, fallback: number) => {
    const text = values[name] ?? String(fallback)
    if (!/^\d{1,4}$/.test(text)) throw new Error(`--${name} takes a number.`)
    return Number(text)
  }
  return {
    kills: integer('kills', 20),
    databaseKills: integer('database-kills', 3),
    stops: integer('stops', 5),
    deliveryKills: integer('delivery-kills', 20),
  }
}

/** Runs rounds of one kind, a line each; returns them. */
async function rounds<R extends Round>(
  title: string,
  count: number,
  run: () => Promise<R>,
  figures: (round: R) => string,
): Promise<R[]> {
  if (count > 0) say(`\n${title}`)
  const done: R[] = []
  for (let number = 1; number <= count; number++) {
    const round = await run()
    done.push(round)
    const { acknowledged, unknown, unknownDone, problems } = round
    const verdict = problems.length === 0 ? '' : `  PROBLEMS: ${problems.slice(0, 5).join('; ')}`
    say(
      `  ${String(number).padStart(3)}  ${acknowledged} acknowledged, ${unknown} unknown (${unknownDone} of them done)  ` +
        `${figures(round)}${verdict}`,
    )
  }
  return done
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b)
  if (sorted.length === 0) return '–'
  return `median ${ms(sorted[Math.floor(sorted.length / 2)]!)}, worst ${ms(sorted.at(-1)!)}`
}

async function main(): Promise<void> {
  const counts = readCounts()
  say(`${availableParallelism()} cores, Linux ${release()}, Node ${process.version}, load ${loadavg()[0]!.toFixed(1)}`)
  if (counts.kills + counts.databaseKills + counts.stops > 0) await proveRecords(counts)
  if (counts.deliveryKills > 0) await proveWebhooks(counts)
}

async function proveWebhooks({ deliveryKills, databaseKills }: ReturnType<typeof readCounts>): Promise<void> {
  say('\nkill -9 of the service and of PostgreSQL while webhooks are delivered, under 8 writers')
  const figures = await proveDeliveries({ kills: deliveryKills, databaseKills }, say)
  const { committed, arrivals, duplicates, duplicatesMax, unknown, caughtUpMs, problems } = figures
  say(
    `${figures.kills} kills, ${committed} records (${unknown} unknown and settled), ${arrivals} arrivals at 4 subscriptions`,
  )
  say(`duplicates ${duplicates}, at most ${duplicatesMax}; all had arrived ${ms(caughtUpMs)} after the last write`)
  sayVerdict(problems, 'No event lost, none made up.')
}

function sayVerdict(problems: readonly string[], good: string): void {
  say(problems.length === 0 ? good : `${problems.length} PROBLEMS:`)
  for (const problem of problems.slice(0, 50)) say(`  ${problem}`)
  if (problems.length > 0) process.exitCode = 1
}

async function proveRecords({ kills, databaseKills, stops }: ReturnType<typeof readCounts>): Promise<void> {
  const proving = await Proving.begin()
  try {
    const killed = await rounds(
      'kill -9 of the service, under 8 writers',
      kills,
      () => proving.killService(),
      ({ readyMs }) => `ready again after ${ms(readyMs)}`,
    )
    const restarted = await rounds(
      'kill -9 of PostgreSQL, under 8 writers',
      databaseKills,
      () => proving.killDatabase(),
      (round) =>
        `refused after ${ms(round.refusedAfterMs)} (${round.refusals} refusals, slowest ${ms(round.slowestRefusalMs)}), ` +
        `recovered after ${ms(round.recoveredAfterMs)}`,
    )
    const stopped = await rounds(
      'SIGTERM, under 8 writers',
      stops,
      () => proving.terminate(),
      (round) => `${round.brokenAnswers} broken answers, ended after ${ms(round.endedAfterMs)} with code ${round.code}`,
    )
    const all: readonly Round[] = [...killed, ...restarted, ...stopped]
    const sum = (of: (round: Round) => number) => all.reduce((total, round) => total + of(round), 0)
    const lost = await proving.recheck()
    say(`\n${sum((r) => r.acknowledged)} acknowledged, ${sum((r) => r.unknown)} unknown and settled`)
    say(`ready again             ${spread(killed.map((round) => round.readyMs))}`)
    say(`first 503               ${spread(restarted.map((round) => round.refusedAfterMs))}`)
    say(`slowest 503             ${spread(restarted.map((round) => round.slowestRefusalMs))}`)
    say(`recovered               ${spread(restarted.map((round) => round.recoveredAfterMs))}`)
    say(`ended after SIGTERM     ${spread(stopped.map((round) => round.endedAfterMs))}`)
    const problems = [...new Set([...all.flatMap((round) => round.problems), ...lost])]
    sayVerdict(problems, 'Nothing lost, nothing doubled.')
  } finally {
    await proving.end()
  }
}

await main()
