import { hash, verify } from '@node-rs/argon2'
import Type from 'typebox'

/**
 * Passwords of builders and of tenant users, hashed by argon2id with the parameters of the OWASP cheat sheet (19 MiB, two
 * passes, one lane). Each takes about 25 ms of a core and its memory, so only a few run at once; who comes then waits.
 */
const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
const atOnceMax = 4

/** How hashes of today begin (the PHC string format). */
const prefix = `$argon2id$v=19$m=${parameters.memoryCost},t=${parameters.timeCost},p=${parameters.parallelism}$`

/** A new password: long rather than complicated (NIST SP 800-63B 3.1.1), and not so long that hashing it is an attack. */
export const NewPassword = Type.String({
  minLength: 10,
  maxLength: 200,
  description: 'A new password: 10 to 200 characters, any of them. It is kept as an argon2id hash.',
  examples: ['correct horse battery staple'],
})

/** A password that somebody claims to have. */
export const Password = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'The password.',
  examples: ['correct horse battery staple'],
})

export interface Passwords {
  hash(password: string): Promise<string>
  /** Takes as long for somebody who does not exist (null) as for a wrong password: the time must not tell who exists. */
  verify(kept: string | null, password: string): Promise<boolean>
  /** Was it hashed with other parameters than today's? Who signs in with the right password is hashed again. */
  isOutdated(kept: string): boolean
}

export function createPasswords(): Passwords {
  const inTurn = limited(atOnceMax)
  let nobodys: Promise<string> | undefined
  return {
    hash: (password) => inTurn(() => hash(password.normalize('NFKC'), parameters)),
    async verify(kept, password) {
      nobodys ??= hash('nobody has this password', parameters)
      const against = kept ?? (await nobodys)
      const right = await inTurn(() => verify(against, password.normalize('NFKC')).catch(() => false))
      return right && kept !== null
    },
    isOutdated: (kept) => !kept.startsWith(prefix),
  }
}

/** At most `max` at once, the others in the order in which they came. */
function limited(max: number) {
  let running = 0
  const waiting: (() => void)[] = []
  return async function run<T>(work: () => Promise<T>): Promise<T> {
    if (running === max) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
