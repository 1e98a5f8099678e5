import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runs } from '../../../test/support/seed.ts'
import { refuseForgedHeaders } from '../../ports/mail/port.ts'
import { type MailContent, messages } from './messages.ts'

const link = 'https://northwind.portico.example/invitations/accept?token=one&more=%22two%22'
const action = { link, expiresAt: '2026-11-27T08:26:11.123Z' }

/** Every kind of message, with the same name wherever there is one. */
function writeAll(name: string): MailContent[] {
  return [
    messages.tenant_invitation({ organizationName: name, inviterName: name, ...action }),
    messages.tenant_password_reset({ organizationName: name, ...action }),
    messages.builder_invitation({ accountName: name, inviterName: name, role: 'developer', ...action }),
    messages.builder_password_reset(action),
    messages.password_changed({ organizationName: name, changedAt: action.expiresAt }),
    messages.password_changed({ organizationName: null, changedAt: action.expiresAt }),
  ]
}

it('an invitation says who invites, to what, where to go and until when', () => {
  const { subject, text, html } = messages.tenant_invitation({
    organizationName: 'Northwind',
    inviterName: 'Ann Example',
    ...action,
  })
  expect(subject).toBe('Ann Example invites you to Northwind')
  expect(text).toBe(
    [
      'Ann Example has invited you to work in Northwind.',
      `Accept the invitation:\n${link}`,
      'The link works once, until 2026-11-27 08:26 UTC.',
      'If you do not know what this is about, you need not do anything.\n',
    ].join('\n\n'),
  )
  expect(html).toContain('<html lang="en">')
  expect(html).toContain(`<a href="${link.replaceAll('&', '&amp;')}">Accept the invitation</a>`)
})

it('who works without a browser is shown the request that does the same', () => {
  const request = ['POST https://portico.example/v1/accept', '{"token": "one", "password": "…"}']
  const { text, html } = messages.builder_password_reset({ ...action, request })
  expect(text).toContain(`\n\nOr send this request:\n${request.join('\n')}\n\nThe link works once`)
  expect(html).toContain(`<p>Or send this request:<br>${request[0]}<br>{&quot;token&quot;: &quot;one&quot;`)
  expect(messages.builder_password_reset(action).text).not.toContain('request')
})

it('what is sent after a change of password holds no link', () => {
  for (const { text, html } of writeAll('Northwind').slice(4)) expect(text + html).not.toMatch(/https?:|href/)
})

it('names cannot forge a header, break out of the HTML or load anything', () => {
  const signs = fc.constantFrom(
    '\r\n',
    '\n',
    '\0',
    '\u2028',
    '\u202e',
    '<',
    '>',
    '"',
    "'",
    '&',
    '<img src=x>',
    'Bcc: e@x',
  )
  const names = fc.array(fc.oneof(signs, fc.string({ unit: 'binary', maxLength: 30 })), { maxLength: 20 })
  fc.assert(
    fc.property(names, (parts) => {
      const plain = writeAll('Northwind')
      for (const [n, { subject, html }] of writeAll(parts.join('')).entries()) {
        refuseForgedHeaders({ to: { name: '', address: 'ann@example.com' }, subject })
        expect(subject.length).toBeLessThan(500)
        const tags = (markup: string) => markup.match(/<[^>]*>/g)
        expect(tags(html)).toEqual(tags(plain[n]!.html))
        expect(html).not.toMatch(/<(img|link|script|style|iframe)|url\(/)
      }
    }),
    runs(300),
  )
})

it.each(['/invitations/accept?token=x', '//shop.example/x', 'javascript:alert(1)', ''])('%j is no link', (relative) => {
  expect(() => messages.builder_password_reset({ ...action, link: relative })).toThrow('absolute')
})
