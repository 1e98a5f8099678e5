import { expect, test } from 'vitest'
import { createFairShare } from './fair-share.ts'

const held = () => Promise.withResolvers<string>()

test('a tenant beyond its share waits for its own, and nobody else does', async () => {
  const { run } = createFairShare(2)
  const [first, second] = [held(), held()]
  const started: string[] = []
  const start = (name: string, tenantId: string, work: Promise<string>) =>
    run(tenantId, () => {
      started.push(name)
      return work
    })
  const running = [start('a1', 'a', first.promise), start('a2', 'a', second.promise)]
  const waiting = start('a3', 'a', Promise.resolve('third'))
  expect(await start('b1', 'b', Promise.resolve('other'))).toBe('other')
  expect(started).toEqual(['a1', 'a2', 'b1'])
  first.resolve('first')
  expect(await waiting).toBe('third')
  second.resolve('second')
  expect(await Promise.all(running)).toEqual(['first', 'second'])
})

test('a failure gives its place back', async () => {
  const { run } = createFairShare(1)
  await expect(run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await run('a', async () => 'yes')).toBe('yes')
})

test('a queue has an end', async () => {
  const { run } = createFairShare(1)
  const gate = held()
  const all = Array.from({ length: 201 }, () => run('a', () => gate.promise))
  await expect(run('a', async () => '')).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 })
  gate.resolve('done')
  expect(await Promise.all(all)).toHaveLength(201)
})
