import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Caller } from '../kernel/caller.ts'
import { createRateLimits, rateBudgets } from './rate-limits.ts'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 8, 14) }))
afterEach(() => void vi.useRealTimers())

const user = { userId: 'u1', displayName: '', email: '', userTypeKey: '', isOwner: false }
const credential = (keyId: string) => ({ keyId, actor: { kind: 'credential', id: keyId } }) as Caller
const token = (keyId: string) => ({ keyId, actor: { kind: 'user', id: user.userId } }) as Caller

/** 0.001 of the budgets: read 6, search 3, write 3, batch 1. */
const small = () => createRateLimits({ scale: 0.001 })

test('each answer says what is left, and of what', async () => {
  const limits = createRateLimits({ scale: 1 })
  expect((await limits.consume(credential('k'), 'read')).headers).toEqual({
    ratelimit: '"read";r=5999;t=60',
    'ratelimit-policy': '"read";q=6000;w=60',
  })
  vi.advanceTimersByTime(29_001)
  expect((await limits.consume(credential('k'), 'read')).headers['ratelimit']).toBe('"read";r=5998;t=31')
})

test('the budget is granted to the last request and refused beyond it, until the window ends', async () => {
  const limits = small()
  for (const left of [2, 1, 0]) {
    expect((await limits.consume(credential('k'), 'write')).headers['ratelimit']).toBe(`"write";r=${left};t=60`)
  }
  vi.advanceTimersByTime(59_500)
  await expect(limits.consume(credential('k'), 'write')).rejects.toMatchObject({
    code: 'rate_limited',
    status: 429,
    retryAfterSeconds: 1,
    headers: { ratelimit: '"write";r=0;t=1', 'ratelimit-policy': '"write";q=3;w=60' },
  })
  vi.advanceTimersByTime(500)
  expect((await limits.consume(credential('k'), 'write')).headers['ratelimit']).toBe('"write";r=2;t=60')
})

test('Retry-After is the whole seconds to the end of the window', async () => {
  const limits = small()
  await limits.consume(credential('k'), 'batch')
  vi.advanceTimersByTime(17_300)
  await expect(limits.consume(credential('k'), 'batch')).rejects.toMatchObject({ retryAfterSeconds: 43 })
})

test('classes and principals have budgets of their own; the tokens of one user share one', async () => {
  const limits = small()
  await limits.consume(token('t1'), 'batch')
  await expect(limits.consume(token('t2'), 'batch')).rejects.toMatchObject({ code: 'rate_limited' })
  await limits.consume(token('t1'), 'search')
  await limits.consume(credential('k1'), 'batch')
  await limits.consume(credential('k2'), 'batch')
})

test('scale 0 turns limits off: no headers, no waiting', () => {
  const limits = createRateLimits({ scale: 0 })
  for (let i = 0; i <= rateBudgets.batch; i++) {
    expect(limits.consume(credential('k'), 'batch')).toEqual({ headers: {} })
  }
})

test('no counter outlives its window', async () => {
  const limits = small()
  for (let i = 0; i < 100; i++) await limits.consume(credential(`k${i}`), 'read')
  expect(vi.getTimerCount()).toBe(100)
  vi.advanceTimersByTime(60_000)
  expect(vi.getTimerCount()).toBe(0)
})

test('docs/limits.md has the budgets that the code has', async () => {
  const page = await readFile(new URL('../../../docs/limits.md', import.meta.url), 'utf8')
  const documented = [...page.matchAll(/^\| (read|search|write|batch|visit) \| (\d+) \|/gm)].map(([, name, budget]) => [
    name,
    Number(budget),
  ])
  expect(Object.fromEntries(documented)).toEqual(rateBudgets)
})
