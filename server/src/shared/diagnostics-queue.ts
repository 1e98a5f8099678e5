export interface OutcomeQueue<Row> {
  readonly size: number
  add(row: Row, failed: boolean): void
  get(correlationId: string): Row | undefined
  /** The next rows to write, failures first. They stay in the queue until `remove`. */
  peek(count: number): Row[]
  remove(rows: readonly Row[]): void
}

/** About 1 KB each. */
export const queueMax = 5000

/** Outcomes that wait to be written, bounded: when it is full the oldest success goes, and only then the oldest failure. */
export function createOutcomeQueue<Row extends { readonly correlationId: string }>(
  onDrop: (count: number) => void,
): OutcomeQueue<Row> {
  const failures = new Map<string, Row>()
  const successes = new Map<string, Row>()

  function dropOldest(): void {
    const lane = successes.size > 0 ? successes : failures
    for (const oldest of lane.keys()) {
      lane.delete(oldest)
      break
    }
    onDrop(1)
  }

  return {
    get size() {
      return failures.size + successes.size
    },
    add(row, failed) {
      if (failures.size + successes.size >= queueMax) dropOldest()
      const lane = failed ? failures : successes
      lane.set(row.correlationId, row)
    },
    get: (correlationId) => failures.get(correlationId) ?? successes.get(correlationId),
    peek(count) {
      const rows = failures.values().take(count).toArray()
      return rows.concat(
        successes
          .values()
          .take(count - rows.length)
          .toArray(),
      )
    },
    remove(rows) {
      for (const { correlationId } of rows) {
        failures.delete(correlationId)
        successes.delete(correlationId)
      }
    },
  }
}
