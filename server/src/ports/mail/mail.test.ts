import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeMailer, makeMessage, sender } from './conformance.ts'
import { createFileOutbox, outboxMax } from './file-outbox.ts'
import { MailError, type Mailer } from './port.ts'
import { createSmtpMailer, type SmtpOptions, smtpSettings } from './smtp.ts'
import { type MailServer, startMailServer } from './testing.ts'

const folder = await mkdtemp(join(tmpdir(), 'portico-mail-'))
const opened: { close(): Promise<void> }[] = []
afterAll(async () => {
  for (const one of opened) await one.close()
  await rm(folder, { recursive: true })
})

async function mailServer(...options: Parameters<typeof startMailServer>): Promise<MailServer> {
  const server = await startMailServer(...options)
  opened.unshift(server)
  return server
}

function smtpMailer(options: Omit<SmtpOptions, 'from'>): Mailer {
  const mailer = createSmtpMailer({ from: sender, ...options })
  opened.unshift(mailer)
  return mailer
}

const refusalOf = async (mailer: Mailer, change = {}) => {
  const refusal = await mailer.send(makeMessage(change)).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(MailError)
  return refusal as MailError
}

describeMailer('smtp', async () => {
  const server = await mailServer()
  return { mailer: smtpMailer({ url: server.url }), received: async () => server.received }
})

describeMailer('file-outbox', async () => {
  const outbox = join(folder, 'conformance')
  return {
    mailer: createFileOutbox({ folder: outbox, from: sender }),
    async received() {
      const names = await readdir(outbox).catch(() => [])
      return Promise.all(
        names.filter((name) => name.endsWith('.eml')).map((name) => readFile(join(outbox, name), 'utf8')),
      )
    },
  }
})

describe('smtp', () => {
  it('takes 4xx for now and 5xx for good, whatever the step', async () => {
    const server = await mailServer()
    const mailer = smtpMailer({ url: server.url })
    for (const [code, permanent] of [
      [421, false],
      [451, false],
      [452, false],
      [550, true],
      [554, true],
    ] as const) {
      server.refuse(code)
      expect(await refusalOf(mailer)).toMatchObject({ permanent })
    }
    server.refuse(null)
    server.unknown.add('nobody@example.com')
    const refusal = await refusalOf(mailer, { to: { name: '', address: 'nobody@example.com' } })
    expect(refusal).toMatchObject({ permanent: true, message: expect.stringContaining('nobody of that name') })
    await mailer.send(makeMessage())
    expect(server.received).toHaveLength(1)
  })

  it('does not repeat what a server says once it has seen the message', async () => {
    const server = await mailServer()
    server.refuse(550, '5.7.1 spam: https://shop.example/accept?token=hunter2')
    const { message, cause } = await refusalOf(smtpMailer({ url: server.url }))
    expect(message).toBe('SMTP DATA: 550 5.7.1')
    expect(cause).toBeUndefined()
  })

  it('signs in, and takes a wrong password for something that can be mended', async () => {
    const server = await mailServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _session, done) =>
        done(null, username === 'a@b' && password === 'pass:word/1' ? { user: 1 } : {}),
    })
    const url = (credentials: string) => `smtp://${credentials}@127.0.0.1:${server.port}`
    await smtpMailer({ url: url('a%40b:pass%3Aword%2F1') }).send(makeMessage())
    expect(server.received).toHaveLength(1)
    const refusal = await refusalOf(smtpMailer({ url: url('a%40b:hunter2') }))
    expect(refusal).toMatchObject({ permanent: false, message: expect.stringContaining('535') })
    expect(refusal.message).not.toContain('hunter2')
  })

  it('takes a sender that the server does not allow for something that can be mended', async () => {
    const refusal = Object.assign(new Error('5.7.1 not from there'), { responseCode: 550 })
    const server = await mailServer({ onMailFrom: (_address, _session, done) => done(refusal) })
    const { permanent, message } = await refusalOf(smtpMailer({ url: server.url }))
    expect(permanent).toBe(false)
    expect(message).toBe('SMTP MAIL FROM: 550 5.7.1 not from there')
  })

  it('takes a server that is not there, or says nothing, for something that passes', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const { port } = silent.address() as { port: number }
    const url = `smtp://127.0.0.1:${port}`
    expect(await refusalOf(smtpMailer({ url, sendTimeoutMs: 200 }))).toMatchObject({
      permanent: false,
      message: 'SMTP EABORT',
    })
    silent.close()
    const gone = await mailServer()
    await gone.close()
    expect(await refusalOf(smtpMailer({ url: gone.url }))).toMatchObject({
      permanent: false,
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('insists on TLS to other machines, from the start or by STARTTLS', () => {
    expect(smtpSettings('smtp://mail.example.com')).toMatchObject({
      port: 587,
      secure: false,
      requireTLS: true,
      ignoreTLS: false,
    })
    expect(smtpSettings('smtps://mail.example.com')).toMatchObject({ port: 465, secure: true })
    expect(smtpSettings('smtps://mail.example.com:2465')).toMatchObject({ port: 2465, secure: true })
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      expect(smtpSettings(`smtp://${host}:25`)).toMatchObject({ port: 25, requireTLS: false, ignoreTLS: true })
    }
    for (const host of ['localhost.example.com', '127.0.0.1.example.com', '10.0.0.1', '[::2]']) {
      expect(smtpSettings(`smtp://${host}:25`)).toMatchObject({ requireTLS: true, ignoreTLS: false })
    }
  })

  // 0.0.0.0 reaches this machine there, and is not one of the names that mean it.
  it.runIf(process.platform === 'linux')('does not hand a message to a server without STARTTLS', async () => {
    const server = await mailServer()
    expect(await refusalOf(smtpMailer({ url: `smtp://0.0.0.0:${server.port}` }))).toMatchObject({ permanent: false })
    expect(server.offered()).toBe(0)
  })

  const certificate = makeCertificate()
  it.runIf(certificate)('checks the certificate', async () => {
    const server = await mailServer({ ...certificate!, secure: true })
    const url = `smtps://127.0.0.1:${server.port}`
    const refusal = await refusalOf(smtpMailer({ url }))
    expect(refusal).toMatchObject({ permanent: false })
    expect(server.offered()).toBe(0)
    await smtpMailer({ url, tls: { ca: certificate!.cert } }).send(makeMessage())
    expect(server.received).toHaveLength(1)
  })
})

describe('file-outbox', () => {
  const ofKind = async (outbox: string, kind: string) =>
    (await readdir(outbox)).sort().filter((name) => name.endsWith(kind))

  it('sorts the newest first, for its owner alone, and leaves nothing unfinished', async () => {
    const outbox = join(folder, 'order')
    const mailer = createFileOutbox({ folder: outbox, from: sender })
    for (const n of [2, 1, 3]) {
      await mailer.send(makeMessage({ writtenAt: Date.UTC(2026, 10, n), subject: `On day ${n}`, text: `token ${n}` }))
    }
    const names = await ofKind(outbox, '.json')
    const read = await Promise.all(names.map(async (name) => JSON.parse(await readFile(join(outbox, name), 'utf8'))))
    expect(read.map(({ subject }) => subject)).toEqual(['On day 3', 'On day 2', 'On day 1'])
    expect(read[0]).toMatchObject({ from: sender, to: { address: 'ann@example.com' }, text: 'token 3' })
    expect(await readdir(outbox)).toHaveLength(6)
    if (process.platform === 'win32') return
    for (const name of await readdir(outbox)) expect((await stat(join(outbox, name))).mode & 0o777).toBe(0o600)
    expect((await stat(outbox)).mode & 0o777).toBe(0o700)
  })

  it(`keeps the last ${outboxMax}`, async () => {
    const outbox = join(folder, 'full')
    const mailer = createFileOutbox({ folder: outbox, from: sender })
    for (let n = 0; n <= outboxMax; n++) await mailer.send(makeMessage({ writtenAt: n, subject: `${n}` }))
    const names = await ofKind(outbox, '.json')
    expect(names).toHaveLength(outboxMax)
    expect(JSON.parse(await readFile(join(outbox, names.at(-1)!), 'utf8'))).toMatchObject({ subject: '1' })
    expect(await ofKind(outbox, '.eml')).toHaveLength(outboxMax)
  })

  it('says that it cannot write, and that this may pass', async () => {
    const mailer = createFileOutbox({ folder: join(import.meta.filename, 'mail'), from: sender })
    expect(await refusalOf(mailer)).toMatchObject({ permanent: false, message: expect.stringContaining('ENOTDIR') })
  })
})

/** A certificate for 127.0.0.1 that signs itself; none where there is no openssl. */
function makeCertificate(): { key: string; cert: string } | undefined {
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  try {
    const pem = execFileSync('openssl', ['req', ...kind, ...subject, '-keyout', '-', '-out', '-'], {
      stdio: 'pipe',
    }).toString()
    const part = (name: string) => pem.match(new RegExp(`-----BEGIN ${name}-----[^]*?-----END ${name}-----\\n`))![0]
    return { key: part('PRIVATE KEY'), cert: part('CERTIFICATE') }
  } catch {
    return undefined
  }
}
