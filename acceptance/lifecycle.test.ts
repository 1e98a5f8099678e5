import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort, makeRoot, removeRoot, ServiceProcess } from './support/service.ts'

/** Told to stop while it starts, the service stops in order all the same: nothing keeps running behind its back. */
describe('a first start that is told to stop', { timeout: 120_000 }, () => {
  let root: string
  let service: ServiceProcess
  beforeEach(async () => {
    root = await makeRoot()
    service = new ServiceProcess({ dataDir: join(root, 'data'), port: await freePort() })
  })
  afterEach(async () => {
    await service.stop()
    await removeRoot(root)
  })

  it.each(['Starting PostgreSQL', 'Creating the schema'])(
    'after “%s” ends with code 0 and takes its database along',
    async (sentence) => {
      while (!service.output.includes(sentence)) {
        if (!service.isRunning) throw new Error(service.output)
        await pause(2)
      }
      service.signal('SIGTERM')
      expect(await service.ended).toEqual({ code: 0, signal: null })
      const pidFile = join(service.dataDir, 'postgres', 'postmaster.pid')
      await expect(readFile(pidFile)).rejects.toThrow('ENOENT')
    },
  )
})
