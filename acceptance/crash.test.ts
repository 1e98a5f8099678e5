import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Proving } from './faults/rounds.ts'

/** A few of the rounds of `npm run test:faults`, at every change. Times are printed there and never asserted. */
describe('what was acknowledged survives, and nothing is there twice, when', { timeout: 120_000 }, () => {
  let proving: Proving
  beforeAll(async () => {
    proving = await Proving.begin()
  })
  afterAll(() => proving?.end())

  it('the service is killed, three times', async () => {
    for (let kill = 0; kill < 3; kill++) {
      const { problems, acknowledged } = await proving.killService()
      expect(problems).toEqual([])
      expect(acknowledged).toBeGreaterThanOrEqual(100)
    }
  })

  it('PostgreSQL is killed: 503 with Retry-After, and it comes back by itself', async () => {
    const { problems, acknowledged, refusals } = await proving.killDatabase()
    expect(problems).toEqual([])
    expect(acknowledged).toBeGreaterThan(0)
    expect(refusals).toBeGreaterThan(0)
  })

  it('the service is told to stop: no answer is broken, and it ends with code 0', async () => {
    const { problems, acknowledged, code } = await proving.terminate()
    expect(problems).toEqual([])
    expect(acknowledged).toBeGreaterThan(0)
    expect(code).toBe(0)
  })

  it('all of this has happened', async () => {
    expect(await proving.recheck()).toEqual([])
  })
})
