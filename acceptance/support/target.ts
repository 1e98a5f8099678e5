import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { Api } from './api.ts'
import type { Demo, DemoApp, DemoOrganization, UserName } from './demo.ts'
import { freePort, makeRoot, removeRoot, ServiceProcess } from './service.ts'

/** The service that is walked through, and the ways into it that demo.json names. */
export interface Target {
  readonly demo: Demo
  readonly baseUrl: string
  /** The first application and its first organisation. */
  readonly app: DemoApp
  readonly organization: DemoOrganization
  readonly live: Api
  /** The first organisation as one of its people. */
  as(user: UserName): Api
  /** With any token, in the first application or another. */
  with(token: string | undefined, saasAppId?: string): Api
  /** Where the service keeps its data; only of a service that was started here. */
  readonly dataDir: string | undefined
}

/**
 * The running service that PORTICO_BASE_URL names, with the demo.json of PORTICO_DEMO_FILE (or of the data directory);
 * otherwise one that is started for this file. Nothing here takes an empty database for granted.
 */
export function useTarget(): Target {
  let target: Target | undefined
  let service: ServiceProcess | undefined
  let root: string | undefined

  beforeAll(async () => {
    const { PORTICO_BASE_URL: address, PORTICO_DEMO_FILE: demoFile, PORTICO_DATA_DIR: dataDir } = process.env
    if (address || demoFile) {
      const path = demoFile ?? join(resolve(dataDir ?? 'data'), 'demo.json')
      const demo: Demo = JSON.parse(await readFile(path, 'utf8'))
      target = targetOf(demo, address ?? demo.baseUrl, undefined)
      return
    }
    root = await makeRoot()
    service = new ServiceProcess({ dataDir: join(root, 'data'), port: await freePort() })
    await service.untilReady()
    target = targetOf(await service.demo(), service.baseUrl, service.dataDir)
  })

  afterAll(async () => {
    await service?.stop()
    if (root) await removeRoot(root)
  })

  // What tests ask for exists when they run, not when they are declared.
  return new Proxy({} as Target, {
    get: (_, name) => target?.[name as keyof Target],
  })
}

function targetOf(demo: Demo, baseUrl: string, dataDir: string | undefined): Target {
  const app = demo.apps[0]!
  const organization = app.organizations[0]!
  const withToken = (token: string | undefined, saasAppId = app.saasAppId) => new Api(baseUrl, saasAppId, token)
  return {
    demo,
    baseUrl,
    app,
    organization,
    live: withToken(organization.credentials.live),
    as: (user) => withToken(organization.users[user].token),
    with: withToken,
    dataDir,
  }
}
