import { expect, test } from 'vitest'
import { modules } from '../src/features/modules/descriptors.ts'
import { moduleKeys } from '../src/kernel/scopes.ts'
import { registry } from '../src/operations.ts'

/** What the specification counts (section 9): native module operations. */
const inAll = 255

/** What every module is to have, after `/modules/{key}` (contract 5). */
const ofEach = {
  list: 'GET ',
  count: 'GET /count',
  get: 'GET /{recordId}',
  create: 'POST ',
  update: 'PATCH /{recordId}',
  archive: 'DELETE /{recordId}',
  restore: 'POST /{recordId}:restore',
  batch: 'POST :batch',
  history: 'GET /{recordId}/history',
  relationships: 'GET /{recordId}/relationships',
  assign: 'POST /{recordId}:assign',
  import: 'POST :import',
  export: 'POST :export',
}

/** What contacts and global search are to have beside that. */
const more = {
  'contacts types': 'GET contacts/types',
  'contacts duplicates': 'GET contacts/duplicates',
  'contacts merge': 'POST contacts/{recordId}:merge',
  'contacts timeline': 'GET contacts/{recordId}/timeline',
  'global-search list': 'GET global-search',
  'global-search count': 'GET global-search/count',
  'global-search suggest': 'GET global-search/suggest',
  'global-search recent': 'GET global-search/recent',
}

const planned = new Map([
  ...modules.flatMap(({ key }) =>
    Object.entries(ofEach).map(([name, route]) => [`${key} ${name}`, route.replace(' ', ` ${key}`)] as const),
  ),
  ...Object.entries(more),
])

test('native modules have the operations that they are to have, and no others', () => {
  expect(planned.size).toBe(inAll)
  const base = '/v1/apps/{saasAppId}/modules/'
  const here = registry.operations.filter(({ path }) => path.startsWith(base))
  const routes = new Set(here.map(({ method, path }) => `${method} ${path.slice(base.length)}`))
  const missing = [...planned].filter(([, route]) => !routes.has(route)).map(([name]) => name)
  expect(missing).toEqual([])
  expect([...routes].filter((route) => ![...planned.values()].includes(route))).toEqual([])
  expect(routes.size).toBe(inAll)
})

test('scopes and descriptors name the same modules', () => {
  expect(modules.map((module) => module.key)).toEqual([...moduleKeys])
})
