import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { vectors } from './signatures.ts'

const run = promisify(execFile)
const sdk = join(import.meta.dirname, '..')
const folder = await mkdtemp(join(tmpdir(), 'portico-sdk-'))
afterAll(() => rm(folder, { recursive: true }))

test('what is built runs as plain JavaScript, imported by the name of the package', async () => {
  const installed = join(folder, 'node_modules', '@portico', 'sdk')
  await mkdir(installed, { recursive: true })
  await cp(join(sdk, 'package.json'), join(installed, 'package.json'))
  const compiler = join(sdk, '..', 'node_modules', 'typescript', 'bin', 'tsc')
  await run(process.execPath, [compiler, '-p', join(sdk, 'tsconfig.build.json'), '--outDir', join(installed, 'dist')])
  const built = await readFile(join(installed, 'dist', 'verify-webhook.js'), 'utf8')
  expect(built).not.toMatch(/^\s*import\b|\brequire\(|\bprocess\b|\bBuffer\b/m)
  expect(await readFile(join(installed, 'dist', 'verify-webhook.d.ts'), 'utf8')).toContain('function verifyWebhook')

  const { secret, timestamp, signature, body } = vectors[0]!
  const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature }
  const delivery = { headers, body, secret, now: Number(timestamp) * 1000 }
  await writeFile(
    join(folder, 'receive.mjs'),
    `import { verifyWebhook } from '@portico/sdk'\nconsole.log((await verifyWebhook(${JSON.stringify(delivery)})).type)\n`,
  )
  const { stdout } = await run(process.execPath, [join(folder, 'receive.mjs')])
  expect(stdout).toBe('membership.role_changed\n')
})
