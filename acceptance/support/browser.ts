import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'

/** Debian's and Ubuntu's; nothing is downloaded for the tests. */
const chromiumPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path))

/** Why there are no tests with a browser, or undefined. */
export const noBrowser = chromiumPath === undefined ? 'no Chromium at /usr/bin/chromium' : undefined

export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath!,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

export interface OpenPage {
  readonly page: Page
  /** The changes that the page asked for, as paths. */
  readonly sent: string[]
  /** What was wrong: messages of the console, policies that were violated, requests to other hosts. */
  readonly faults: string[]
}

type ContextOptions = NonNullable<Parameters<Browser['newContext']>[0]>

/** A page with a profile of its own. */
export async function openPage(browser: Browser, options: ContextOptions = {}): Promise<OpenPage> {
  const page = await (await browser.newContext(options)).newPage()
  const sent: string[] = []
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('console', (message) => {
    if (!isRefusal(message.text())) faults.push(`${message.type()}: ${message.text()}`)
  })
  page.on('request', (request) => {
    const { host, pathname } = new URL(request.url())
    if (request.method() !== 'GET') sent.push(pathname)
    if (!request.isNavigationRequest() && host !== new URL(page.url()).host) faults.push(`asked for ${request.url()}`)
  })
  const tell = '({ violatedDirective, blockedURI }) => console.error("policy", violatedDirective, blockedURI)'
  await page.addInitScript({ content: `document.addEventListener("securitypolicyviolation", ${tell})` })
  return { page, sent, faults }
}

/** The browser notes every refusal, also those that a page tells in words. */
function isRefusal(text: string): boolean {
  return /^Failed to load resource: the server responded with a status of 4\d\d /.test(text)
}

/** Every visible field has a name, and nothing is cut off on the right. */
export async function expectReadable(page: Page): Promise<void> {
  const visible = '[...document.querySelectorAll("input")].filter((field) => field.offsetParent !== null)'
  const unnamed = `${visible}.filter((field) => !field.labels[0]?.textContent.trim()).map((field) => field.id)`
  expect(await page.evaluate(`${visible}.length`)).toBeGreaterThan(0)
  expect(await page.evaluate(unnamed)).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')).toBe(0)
}
