/** What every adapter of the key-management port must do. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type KeyManagement, KeyManagementError } from './port.ts'

export interface KeyManagementStages {
  readonly first: KeyManagement
  /** The same after its key was replaced, with the one from before still at hand. Called once, last. */
  rotate(): Promise<KeyManagement>
  /** One of the same kind with a key of its own. */
  readonly stranger: KeyManagement
  close(): Promise<void>
}

export function describeKeyManagement(name: string, open: () => Promise<KeyManagementStages>): void {
  describe(`${name} conforms to the key-management port`, () => {
    let stages: KeyManagementStages
    let keys: KeyManagement
    beforeAll(async () => {
      stages = await open()
      keys = stages.first
    })
    afterAll(() => stages?.close())

    const key = randomBytes(32)
    const reasonOf = (attempt: Promise<unknown>) =>
      attempt.then(
        () => 'no refusal',
        (error: unknown) => (error instanceof KeyManagementError ? error.reason : `wrong error: ${error}`),
      )

    it.each([16, 32, 64])('unwraps a key of %i bytes that it wrapped', async (length) => {
      const bytes = randomBytes(length)
      const wrapped = await keys.wrap(bytes, 'data key 1')
      expect(await keys.unwrap(wrapped, 'data key 1')).toEqual(bytes)
    })

    it.each([0, 15, 65])('refuses %i bytes, which are no key', async (length) => {
      await expect(keys.wrap(new Uint8Array(length), 'data key 1')).rejects.toThrow(RangeError)
    })

    it('never wraps alike, and shows nothing of the key', async () => {
      const [one, two] = await Promise.all([keys.wrap(key, 'data key 1'), keys.wrap(key, 'data key 1')])
      expect(one.wrapped.equals(two.wrapped)).toBe(false)
      for (const form of [key, Buffer.from(key.toString('base64')), Buffer.from(key.toString('hex'))]) {
        expect(one.wrapped.includes(form.subarray(0, 8))).toBe(false)
      }
    })

    it('names the key that it wraps under, which is the current one', async () => {
      const { keyId } = await keys.wrap(key, 'data key 1')
      expect(keyId).toBe(await keys.currentKeyId())
      expect(keys.holds(keyId)).toBe(true)
      expect(keys.place).toMatch(/\w/)
    })

    it('refuses another context', async () => {
      const wrapped = await keys.wrap(key, 'data key 1')
      for (const other of ['data key 2', 'data key 1 ', '']) {
        expect(await reasonOf(keys.unwrap(wrapped, other))).toBe('not_authentic')
      }
    })

    it('refuses what was changed or cut', async () => {
      const { wrapped, keyId } = await keys.wrap(key, 'data key 1')
      const changed = Buffer.from(wrapped)
      changed[30]! ^= 1
      for (const broken of [changed, wrapped.subarray(0, -4), wrapped.subarray(0, 12)]) {
        expect(await reasonOf(keys.unwrap({ wrapped: broken, keyId }, 'data key 1'))).toBe('not_authentic')
      }
    })

    it('refuses what was wrapped under a key that it does not have', async () => {
      const { stranger } = stages
      const theirs = await stranger.wrap(key, 'data key 1')
      expect(theirs.keyId).not.toBe(await keys.currentKeyId())
      expect(keys.holds(theirs.keyId)).toBe(false)
      expect(await reasonOf(keys.unwrap(theirs, 'data key 1'))).toBe('unknown_key')
      const pretended = { ...theirs, keyId: await keys.currentKeyId() }
      expect(await reasonOf(keys.unwrap(pretended, 'data key 1'))).toBe('not_authentic')
    })

    it('after its key was replaced wraps under the new one, and still unwraps', async () => {
      const before = await keys.wrap(key, 'data key 1')
      const rotated = await stages.rotate()
      expect(await rotated.currentKeyId()).not.toBe(before.keyId)
      expect(rotated.holds(before.keyId)).toBe(true)
      expect(await rotated.unwrap(before, 'data key 1')).toEqual(key)
      const after = await rotated.wrap(key, 'data key 1')
      expect(after.keyId).toBe(await rotated.currentKeyId())
      expect(await rotated.unwrap(after, 'data key 1')).toEqual(key)
    })
  })
}
