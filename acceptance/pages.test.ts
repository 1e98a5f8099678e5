import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { send } from './support/api.ts'
import { expectReadable, noBrowser, openBrowser, openPage } from './support/browser.ts'
import { createLinkReader } from './support/mail.ts'
import { freePort, makeRoot, removeRoot, ServiceProcess } from './support/service.ts'

/** The pages behind the links in mails, as a person meets them: in a browser, from the mail to the end. */
if (noBrowser !== undefined) console.warn(`The pages behind links in mails are not tested: ${noBrowser}.`)

const password = 'correct horse battery staple'
const another = 'seven quiet lighthouse keepers'
const tooShort = 'Must not have fewer than 10 characters.'

describe.skipIf(noBrowser !== undefined)('pages behind the links in mails', { timeout: 60_000 }, () => {
  let root: string
  let service: ServiceProcess
  let browser: Browser
  let token = ''
  let linkMailedTo: ReturnType<typeof createLinkReader>

  beforeAll(async () => {
    root = await makeRoot()
    service = new ServiceProcess({ dataDir: join(root, 'data'), port: await freePort(), env: { PORTICO_DEMO: 'off' } })
    linkMailedTo = createLinkReader(service.dataDir)
    ;[browser] = await Promise.all([openBrowser(), service.untilReady()])
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await service?.stop()
    await removeRoot(root)
  })

  /** As the owner of the account, unless `headers` say otherwise. */
  async function ask<Body = { readonly [name: string]: string }>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = { authorization: `Bearer ${token}` },
  ) {
    return send<Body>(new URL(path, service.baseUrl).href, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  test('the first account is made with the setup token, and the page asks for what it needs', async () => {
    const { page, faults } = await openPage(browser)
    await page.goto(`${service.baseUrl}/accept-invitation`)
    await page
      .getByLabel('Token of the link')
      .fill((await readFile(join(service.dataDir, 'setup-token'), 'utf8')).trim())
    await page.getByLabel('Password', { exact: true }).fill('short')
    expect(await page.getByLabel('Your email address').isVisible()).toBe(false)
    await page.keyboard.press('Enter')
    await page.getByLabel('Your email address').fill('ada@acme.example')
    expect(await page.locator('#displayName-problem').textContent()).toBe('This field is required.')
    await page.getByLabel('Name of the account').fill('Acme')
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('#password-problem').textContent()).toBe(tooShort)
    await expectReadable(page)
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'You are in the team' }).waitFor()
    expect(await page.locator('main').textContent()).toMatch(/account Acme, in the role owner.*with ada@acme\.example/s)
    token = await page.locator('#session').inputValue()
    expect((await ask('GET', '/v1/platform/me')).status).toBe(200)
    await expectReadable(page)
    expect(faults).toEqual([])
  })

  test('an invitation to a team is accepted once, however often the button is pressed', async () => {
    await ask('POST', '/v1/platform/team/invitations', { email: 'grace@acme.example', role: 'developer' })
    const link = await linkMailedTo('grace@acme.example', '/accept-invitation')
    const { page, sent, faults } = await openPage(browser, { viewport: { width: 320, height: 600 } })
    await page.goto(link)
    await page.getByLabel('Your name').waitFor()
    expect(page.url()).toBe(`${service.baseUrl}/accept-invitation`)
    expect(await page.content()).not.toMatch(new RegExp(`Acme|Grace|${link.split('=')[1]}`, 'i'))
    expect(await page.getByLabel('Token of the link').isVisible()).toBe(false)
    expect(await page.getByLabel('Password', { exact: true }).getAttribute('autocomplete')).toBe('new-password')
    await expectReadable(page)
    await page.getByLabel('Your name').fill('Grace Hopper')
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.evaluate('for (let n = 0; n < 5; n++) document.querySelector("form").requestSubmit()')
    await page.getByRole('heading', { name: 'You are in the team' }).waitFor()
    expect(sent).toEqual(['/v1/platform/team/invitations:accept'])
    await expectReadable(page)
    await page.goto(link)
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.getByRole('button').click()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('was accepted or revoked')
    expect(faults).toEqual([])
  })

  test('who has signed in before proves the own password, and the code of the second factor', async () => {
    const signedIn = await ask<SignedIn>('POST', '/v1/platform/sessions', { email: 'grace@acme.example', password })
    const asGrace = { authorization: `Bearer ${signedIn.body.token}` }
    const { secret } = (await ask('POST', '/v1/platform/me/totp:enroll', { password }, asGrace)).body
    const code = totp(secret!, Date.now())
    const confirmed = await ask<{ recoveryCodes: string[] }>('POST', '/v1/platform/me/totp:confirm', { code }, asGrace)
    await ask('DELETE', `/v1/platform/team/${signedIn.body.builder.builderId}`)
    await ask('POST', '/v1/platform/team/invitations', { email: 'grace@acme.example', role: 'developer' })

    const { page, faults } = await openPage(browser)
    await page.goto(await linkMailedTo('grace@acme.example', '/accept-invitation'))
    await page.getByLabel('Password', { exact: true }).fill(another)
    await page.getByRole('button').click()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('password or the code is wrong')
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.getByRole('button').click()
    await page.getByLabel('Code of your second factor').fill(confirmed.body.recoveryCodes[0]!)
    await expectReadable(page)
    await page.getByRole('button').click()
    await page.getByRole('heading', { name: 'You are in the team' }).waitFor()
    expect(faults).toEqual([])
  })

  test('a builder chooses a new password', async () => {
    await ask('POST', '/v1/platform/password-resets', { email: 'grace@acme.example' })
    const link = await linkMailedTo('grace@acme.example', '/reset-password')
    const { page, faults } = await openPage(browser)
    await page.goto(link)
    await chooseAnother(page)
    const signIn = await ask('POST', '/v1/platform/sessions', { email: 'grace@acme.example', password: another })
    expect(signIn.body['code']).toBe('totp_required')
    expect(faults).toEqual([])
  })

  test('on the host of an organization a user accepts an invitation, and chooses a new password', async () => {
    const email = 'tom@northwind.example'
    const saasAppId = (await ask('POST', '/v1/platform/applications', { appKey: 'desk', name: 'Desk' })).body[
      'saasAppId'
    ]
    const organization = { name: 'Northwind Heating', slug: 'northwind', owner: { email, displayName: 'Tom' } }
    const made = await ask('POST', `/v1/platform/applications/${saasAppId}/organizations`, organization)
    expect(made.status, made.text).toBe(201)

    const dark = { viewport: { width: 320, height: 600 }, colorScheme: 'dark' } as const
    const { page, sent, faults } = await openPage(browser, dark)
    await page.goto(await linkMailedTo(email, '/accept-invitation'))
    const { origin, host } = new URL(page.url())
    expect(host).toMatch(/^northwind\.localhost:/)
    expect(page.url()).toBe(`${origin}/accept-invitation`)
    expect(await page.content()).not.toContain('Northwind')
    await page.getByLabel('New password').fill('short')
    await page.getByRole('button').click()
    await expect.poll(() => page.locator('#password-problem').textContent()).toBe(tooShort)
    await expectReadable(page)
    await page.getByLabel('New password').fill(password)
    await page.getByRole('button').click()
    await page.getByRole('heading', { name: 'You can sign in now' }).waitFor()
    expect(await page.locator('main').textContent()).toMatch(/Welcome, Tom\..*tom@northwind\.example/s)
    expect(sent).toEqual(['/api/invitations:accept', '/api/invitations:accept'])

    expect(await post(page, '/api/password-resets', { email })).toBe(202)
    await page.goto(await linkMailedTo(email, '/reset-password'))
    await chooseAnother(page)
    expect(await post(page, '/api/session', { email, password: another })).toBe(201)
    expect(faults).toEqual([])
  })

  test.each([
    ['127.0.0.1', '/accept-invitation', 'The invitation was not found'],
    ['127.0.0.1', '/reset-password', 'Ask for a new one.'],
    ['northwind.localhost', '/accept-invitation', 'The invitation was not found'],
    ['northwind.localhost', '/reset-password', 'Ask for a new one.'],
  ])('on %s, %s tells in words that a token is good for nothing', async (hostname, path, words) => {
    const { page, faults } = await openPage(browser)
    await page.goto(Object.assign(new URL(path, service.baseUrl), { hostname, hash: 'token=invented' }).href)
    await page.getByLabel('Show the password').check()
    await page.locator('[data-secret]').fill(password)
    await page.getByRole('button').click()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain(words)
    await page.reload()
    await page.getByLabel('Token of the link').waitFor()
    expect(faults).toEqual([])
  })
})

interface SignedIn {
  readonly token: string
  readonly builder: { readonly builderId: string }
}

/** Sends a body to the host of the page: the browser finds `*.localhost` on every system. Returns the status. */
function post(page: Page, path: string, body: unknown): Promise<number> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  return page.evaluate(`fetch(${JSON.stringify(path)}, ${JSON.stringify(init)}).then(({ status }) => status)`)
}

/** On a page for a new password: one that is too short, then one that will do, with the keyboard alone. */
async function chooseAnother(page: Page): Promise<void> {
  const field = page.getByLabel('New password')
  expect(await field.getAttribute('autocomplete')).toBe('new-password')
  await field.fill('short')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.locator('#newPassword-problem').textContent()).toBe(tooShort)
  expect(await page.evaluate('document.activeElement.id')).toBe('newPassword')
  expect(await field.getAttribute('aria-invalid')).toBe('true')
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type(another)
  for (const _ of ['to the checkbox', 'to the button']) await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  await page.getByRole('heading', { name: 'Your password was changed' }).waitFor()
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 6238 with its defaults: six digits, HMAC-SHA-1, 30 seconds. */
function totp(secret: string, atMs: number): string {
  const bits = [...secret].map((one) => base32.indexOf(one).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(atMs / 30_000)))
  const mac = createHmac('sha1', key).update(counter).digest()
  const number = mac.readUInt32BE(mac[19]! & 15) & 0x7fffffff
  return String(number % 1_000_000).padStart(6, '0')
}
