/** What every adapter of the mail port must do. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type MailAddress, MailError, type Mailer, type Message } from './port.ts'
import { readMail } from './testing.ts'

export interface OpenMailer {
  readonly mailer: Mailer
  /** Every message that arrived so far, as it would go over the wire. */
  received(): Promise<readonly string[]>
}

/** Who all messages of the suite come from. */
export const sender: MailAddress = { name: 'Portico, für alle', address: 'no-reply@portico.example' }

export function makeMessage(change: Partial<Message> = {}): Message {
  return {
    id: randomUUID(),
    writtenAt: Date.UTC(2026, 10, 20, 8, 26, 11),
    to: { name: 'Ann Example', address: 'ann@example.com' },
    subject: 'A subject',
    text: 'A text\n',
    html: '<p>A text</p>\n',
    ...change,
  }
}

/** Runs the suite; `open` is called once, on a mailer that sends from `sender`. */
export function describeMailer(name: string, open: () => Promise<OpenMailer>): void {
  describe(`${name} conforms to the mail port`, () => {
    let opened: OpenMailer
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.mailer.close())

    async function deliver(change: Partial<Message> = {}) {
      const message = makeMessage(change)
      await opened.mailer.send(message)
      const found = (await opened.received())
        .map(readMail)
        .filter(({ headers }) => headers.get('message-id')?.includes(message.id))
      expect(found).toHaveLength(1)
      return found[0]!
    }

    it('brings who, to whom, when and what', async () => {
      const id = randomUUID()
      const { headers, text, html } = await deliver({ id })
      expect(headers.get('from')).toBe(`${sender.name} <${sender.address}>`)
      expect(headers.get('to')).toBe('Ann Example <ann@example.com>')
      expect(headers.get('subject')).toBe('A subject')
      expect(headers.get('message-id')).toBe(`<${id}@portico.example>`)
      expect(Date.parse(headers.get('date')!)).toBe(Date.UTC(2026, 10, 20, 8, 26, 11))
      expect(headers.get('auto-submitted')).toBe('auto-generated')
      expect([text, html]).toEqual(['A text\n', '<p>A text</p>\n'])
    })

    it('brings every script, long lines, and lines that mean something in SMTP', async () => {
      const spoken = 'Zürich 東京 мир 🙂'
      const body = `${spoken}\n.\n..\nFrom here\n${'long '.repeat(500)}=\nQUIT\n`
      const { headers, text, html } = await deliver({
        to: { name: spoken, address: 'ann+tag@bücher.example' },
        subject: `${spoken} ${'and more '.repeat(30)}end`,
        text: body,
        html: body,
      })
      expect(headers.get('subject')).toBe(`${spoken} ${'and more '.repeat(30)}end`)
      expect(headers.get('to')).toBe(`${spoken} <ann+tag@xn--bcher-kva.example>`)
      expect([text, html]).toEqual([body, body])
    })

    it('keeps a name that looks like addresses a name', async () => {
      const { headers } = await deliver({ to: { name: 'Bob <bob@example.com>, "Eve"', address: 'ann@example.com' } })
      expect(headers.get('to')).toBe('"Bob <bob@example.com>, \\"Eve\\"" <ann@example.com>')
    })

    const forgeries: readonly [string, Partial<Message>][] = [
      ...['\r\n', '\n', '\r', '\0', '\u2028', '\u0085'].flatMap((end): [string, Partial<Message>][] => [
        [
          `${JSON.stringify(end)} in a name`,
          { to: { name: `Ann${end}Bcc: eve@example.com`, address: 'ann@example.com' } },
        ],
        [`${JSON.stringify(end)} in a subject`, { subject: `Hello${end}Bcc: eve@example.com` }],
        [
          `${JSON.stringify(end)} in an address`,
          { to: { name: '', address: `ann@example.com${end}Bcc: eve@example.com` } },
        ],
      ]),
      ['two addresses', { to: { name: '', address: 'ann@example.com,eve@example.com' } }],
      ['an address with a name', { to: { name: '', address: 'Eve <eve@example.com>' } }],
      ['an address in brackets', { to: { name: '', address: '<eve@example.com>' } }],
      ['a parameter behind the address', { to: { name: '', address: 'ann@example.com> NOTIFY=SUCCESS' } }],
      ['no address', { to: { name: 'Ann', address: '' } }],
    ]
    it.each(forgeries)('refuses %s for good, and sends nothing', async (_, change) => {
      const before = (await opened.received()).length
      const refusal = await opened.mailer.send(makeMessage(change)).catch((error: unknown) => error)
      expect(refusal).toBeInstanceOf(MailError)
      expect(refusal).toMatchObject({ permanent: true, message: expect.not.stringContaining('eve') })
      expect(await opened.received()).toHaveLength(before)
    })

    it('sends the same message again under the same id', async () => {
      const message = makeMessage()
      await opened.mailer.send(message)
      await opened.mailer.send(message)
      const ids = (await opened.received()).map((one) => readMail(one).headers.get('message-id'))
      expect(new Set(ids.filter((id) => id?.includes(message.id))).size).toBe(1)
    })

    it('sends twenty at once, each of them once', async () => {
      const many = Array.from({ length: 20 }, (_, n) => makeMessage({ subject: `One of many: ${n}` }))
      await Promise.all(many.map((message) => opened.mailer.send(message)))
      const subjects = (await opened.received()).map((one) => readMail(one).headers.get('subject'))
      const ofMany = subjects.filter((subject) => subject?.startsWith('One of many'))
      expect(ofMany.sort()).toEqual(many.map(({ subject }) => subject).sort())
    })

    it('closes once, however often it is asked', async () => {
      await opened.mailer.close()
      await opened.mailer.close()
    })
  })
}
