import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort, makeRoot, removeRoot, ServiceProcess } from './support/service.ts'

/**
 * docs/tutorial.md, run as it stands there on an empty database, in one shell. The port is a free one, and curl is told by
 * its own configuration to fail where an answer is no success.
 */
const run = promisify(execFile)
const page = resolve(import.meta.dirname, '../docs/tutorial.md')

let root: string
let service: ServiceProcess
let port: number
beforeAll(async () => {
  root = await makeRoot()
  port = await freePort()
  service = new ServiceProcess({ dataDir: join(root, 'data'), port, env: { PORTICO_DEMO: 'off' } })
  await service.untilReady()
}, 120_000)
afterAll(async () => {
  await service.stop()
  await removeRoot(root)
})

test('the tutorial works as it is written', { timeout: 120_000 }, async () => {
  const text = await readFile(page, 'utf8')
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block!)
  expect(blocks.length).toBeGreaterThan(8)
  await writeFile(join(root, '.curlrc'), 'fail-with-body\n')
  const script = ['set -euo pipefail', ...blocks].join('\n').replaceAll('8080', String(port))
  const env = { PATH: process.env['PATH'], HOME: root, CURL_HOME: root, TOKEN: '' }
  const { stdout } = await run('bash', ['-c', script], { cwd: root, env }).catch((error) => {
    throw new Error(`${error.stderr}\n${error.stdout}\n${service.output}`)
  })
  // What the last request answers: the record is found by its words.
  expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toMatchObject({
    totalRecords: 1,
    records: [{ displayName: 'Boiler makes noises', fields: { number: 1, price: '89.00', urgent: true } }],
  })
})
