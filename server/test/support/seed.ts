import fc from 'fast-check'

/**
 * The seed of this run of a property test. It stands in the name of the tests and fast-check prints it with a failure; run
 * again with `PORTICO_TEST_SEED=<it>` to get the same data and the same questions.
 */
export const seed = Number(process.env['PORTICO_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

const effort = Number(process.env['PORTICO_TEST_EFFORT'] ?? 1)

/** How often to ask: `count` times, or more where `PORTICO_TEST_EFFORT` says so. */
export function runs(count: number): { readonly seed: number; readonly numRuns: number } {
  return { seed, numRuns: Math.ceil(count * effort) }
}

/** How long that may take. */
export const patienceMs = 120_000 * Math.max(1, effort)

/** `count` values of an arbitrary, the same for the same seed. */
export function sample<T>(arbitrary: fc.Arbitrary<T>, count: number): T[] {
  return fc.sample(arbitrary, { seed, numRuns: count })
}
