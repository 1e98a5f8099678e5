import { expect, test } from 'vitest'
import { platformRegistry, visitorRegistry } from '../src/operations.ts'

/** What the specification counts (section 9): operations in the contract of `/v1/platform`. */
const inAll = 73

/** How many operations each family has, found by how their paths go on after `/v1/platform`; the first that fits takes one. */
const families: Readonly<Record<string, readonly [path: RegExp, count: number]>> = {
  contract: [/^\/openapi\.json$/, 1],
  model: [/^\/applications\/\{saasAppId\}\/(model|draft|releases)\b/, 15],
  organizations: [/\/organizations(\/\{organizationId\}(\/locations\/\{locationKey\})?)?$/, 5],
  domains: [/\/organizations\/\{organizationId\}\/domain:verify$/, 1],
  users: [/\/organizations\/\{organizationId\}\/users\b/, 4],
  invitations: [/\/organizations\/\{organizationId\}\/invitations\b/, 4],
  credentials: [/\/organizations\/\{organizationId\}\/credentials\b/, 4],
  applications: [/^\/applications\b/, 5],
  billing: [/^\/(billing|marketplace)\//, 3],
  audit: [/^\/audit\b/, 1],
  team: [/^\/team\b/, 5],
  account: [/^\/account\b/, 2],
  me: [/^\/me\b/, 6],
  sessions: [/^\/sessions\b/, 2],
}

/** Operations that need no credential: sign in, accept an invitation to a team, ask for a password and set it. */
const visitors = 4

/** What other families still add to the platform, beside what is here. */
const stillToCome = {
  usage: 1,
  listings: 1,
  secrets: 3,
  serviceInstallation: 4,
  metrics: 1,
  kitDownloads: 1,
}

test('the platform has the operations that its families are to have', () => {
  const found = Object.fromEntries(Object.keys(families).map((family) => [family, [] as string[]]))
  for (const { method, path } of platformRegistry.operations) {
    const rest = path.replace(/^\/v1\/platform/, '')
    const [family] = Object.entries(families).find(([, [pattern]]) => pattern.test(rest)) ?? ['none']
    found[family] ??= []
    found[family].push(`${method} ${path}`)
  }
  for (const [family, routes] of Object.entries(found)) {
    expect(routes, `${family}: ${routes.join()}`).toHaveLength(families[family]?.[1] ?? 0)
  }
  expect(visitorRegistry.operations).toHaveLength(visitors)
})

test('with what is still to come there are as many as the specification counts', () => {
  const here = platformRegistry.operations.length + visitorRegistry.operations.length
  const planned = Object.values(stillToCome).reduce((sum, count) => sum + count, 0)
  expect([here, planned, here + planned]).toEqual([62, 11, inAll])
})
