import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import { validatorOf } from '../../../kernel/validation.ts'
import { NewPassword } from '../../../shared/identity/passwords.ts'
import { newPasswordHint } from './link-page-texts.ts'

/** What browsers do with these pages is in acceptance/pages.test.ts. */
let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.stop())

const get = (host: string, path: string, method = 'GET') => platform.call(method, path, { headers: { host } })
const api = '127.0.0.1:8080'
const tenant = 'nobody-has-this.localhost:8080'
const pages = [
  [api, '/accept-invitation', '/v1/platform/team/invitations:accept'],
  [api, '/reset-password', '/v1/platform/password-resets:complete'],
  [tenant, '/accept-invitation', '/api/invitations:accept'],
  [tenant, '/reset-password', '/api/password-resets:complete'],
] as const

test.each(pages)('on %s, %s sends to %s and loads its own files alone', async (host, path, operation) => {
  const page = await get(host, path)
  expect(page.status).toBe(200)
  expect(page.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  })
  expect(page.text).toContain(`data-operation="${operation}"`)
  expect(page.text).toContain(newPasswordHint)
  expect(page.text).not.toMatch(/<script(?![^>]* src=)|<style|\bstyle=|\son\w+=/)
  const files = [...page.text.matchAll(/(?:src|<link[^>]* href)="([^"]+)"/g)].map(([, file]) => file!)
  expect(files).toEqual([`${path}/page.css`, `${path}/page.js`])
  for (const file of files) expect((await get(host, file)).status).toBe(200)
})

test('the pages can be read, and nothing else', async () => {
  for (const host of [api, tenant]) {
    expect(await get(host, '/reset-password', 'HEAD')).toMatchObject({ status: 200, text: '' })
    const refused = await get(host, '/reset-password', 'POST')
    expect(refused).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    expect((await get(host, '/sign-in')).status).toBe(404)
  }
  expect((await get('a,b', '/reset-password')).json.code).toBe('route_not_found')
})

test('the pages tell the length that passwords must have', () => {
  const told = Number(/^At least (\d+) characters/.exec(newPasswordHint)?.[1])
  const isLongEnough = (length: number) => validatorOf(NewPassword).Check('x'.repeat(length))
  expect([isLongEnough(told), isLongEnough(told - 1)]).toEqual([true, false])
})
