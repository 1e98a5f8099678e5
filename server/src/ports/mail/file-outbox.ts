import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import MailComposer from 'nodemailer/lib/mail-composer'
import { compose } from './compose.ts'
import { type MailAddress, MailError, type Mailer, type Message } from './port.ts'

export interface FileOutboxOptions {
  /** Made when it is not there, for its owner alone: the messages hold one-time tokens. */
  readonly folder: string
  readonly from: MailAddress
}

/** Messages that are kept; the oldest go first. */
export const outboxMax = 500

/**
 * Writes each message into a folder: `.eml` for a mail program, `.json` for people and scripts. Names sort with the newest
 * first, so that `ls | head -1` is the last one. A message that is sent again takes its own place.
 */
export function createFileOutbox({ folder, from }: FileOutboxOptions): Mailer {
  return {
    async send(message) {
      const composed = compose(message, from)
      const { messageId, to, subject, text } = composed
      const date = composed.date.toISOString()
      const name = join(folder, nameOf(message))
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await write(`${name}.eml`, await new MailComposer(composed).compile().build())
        await write(`${name}.json`, `${JSON.stringify({ messageId, date, from, to, subject, text }, null, 2)}\n`)
        await dropOldest(folder)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        throw new MailError(`The outbox could not be written (${code ?? 'error'}).`, { permanent: false, cause: error })
      }
    },
    async close() {},
  }
}

/** Milliseconds of the year 2286: what is left until then gets smaller, so that newer names sort first. */
const endOfTime = 9_999_999_999_999

function nameOf({ id, writtenAt }: Message): string {
  const time = new Date(writtenAt).toISOString().replaceAll(':', '-')
  return `${String(endOfTime - writtenAt).padStart(13, '0')}-${time}-${id}`
}

/** Whoever sees the file sees all of it. */
async function write(path: string, content: string | Buffer): Promise<void> {
  const unfinished = `${path}.${process.pid}.part`
  await writeFile(unfinished, content, { mode: 0o600 })
  await rename(unfinished, path)
}

async function dropOldest(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => /^\d{13}-.*\.(eml|json)$/.test(name)).sort()
  for (const name of names.slice(2 * outboxMax)) await rm(join(folder, name), { force: true })
}
