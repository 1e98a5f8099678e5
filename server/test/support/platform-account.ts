import { expect } from 'vitest'
import type { BaseContext, Operation } from '../../src/kernel/operation.ts'
import type { BuilderRole } from '../../src/kernel/scopes.ts'
import { platformRegistry, visitorRegistry } from '../../src/operations.ts'
import { createPasswords } from '../../src/shared/identity/passwords.ts'
import type { Answer, HttpClient, Sent } from './http-client.ts'
import type { Platform, TestBuilder } from './platform.ts'

/**
 * An account whose good requests make what they need, once, through the API itself: whoever asks for a user gets an
 * organisation and an application too. Every text in it holds the account's `word`.
 */
export interface Account extends TestBuilder {
  readonly platform: Platform
  readonly word: string
  readonly role: BuilderRole
  /** The same account, seen by a member of that role. What was made is shared. */
  as(role: BuilderRole): Promise<Account>
  /** Somebody new with a password, and the role of the one who asks unless said otherwise. */
  freshMember(role?: BuilderRole): Promise<TestBuilder>
  /** A name that nobody has had before, with the word in it; `key()` gives one that fits a key, `mail()` an address. */
  name(kind: string): string
  key(kind: string): string
  mail(kind: string): string
  /** Makes something the first time that its name is asked for. */
  once<T>(name: string, make: () => Promise<T>): Promise<T>
  /** Everything that was answered to the account, and what it had sent. */
  readonly told: readonly Told[]
  /** Sends as the owner, and expects that it works. */
  call<T = Readonly<Record<string, unknown>>>(method: string, path: string, body?: unknown): Promise<T>
  /** Sends whatever it is told to, and notes the answer. */
  ask(method: string, path: string, sent?: Sent, client?: Pick<HttpClient, 'call'>): Promise<Answer>
}

export interface Told {
  readonly sent: string
  readonly answer: Answer
}

/** The password of everybody in these accounts. */
export const password = 'correct horse battery staple'

let hashed: Promise<string> | undefined

export async function openAccount(platform: Platform, word: string): Promise<Account> {
  const made = new Map<string, Promise<unknown>>()
  const told: Told[] = []
  let count = 0
  const owner = await christen(await platform.newAccount())
  await platform.db.database.as('portico_owner', (tx) =>
    tx.rows({
      text: 'UPDATE portico.account SET name = $1, billing_email = $2 WHERE account_id = $3',
      values: [`${word} account`, `${word}@billing.example`, owner.accountId],
    }),
  )
  return seenBy(owner, 'owner')

  /** A password, and the account's word in what the fixture wrote by itself. */
  async function christen(builder: TestBuilder): Promise<TestBuilder> {
    const email = `${word}-${builder.email}`
    hashed ??= createPasswords().hash(password)
    const hash = await hashed
    await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: 'UPDATE portico.builder SET password_hash = $1, display_name = $2, email = $3 WHERE builder_id = $4',
        values: [hash, `${word} builder`, email, builder.builderId],
      }),
    )
    return { ...builder, email }
  }

  async function join(role: BuilderRole): Promise<TestBuilder> {
    return christen(await platform.newMember(owner.accountId, role))
  }

  function once<T>(name: string, make: () => Promise<T>): Promise<T> {
    if (!made.has(name)) made.set(name, make())
    return made.get(name) as Promise<T>
  }

  function seenBy(builder: TestBuilder, role: BuilderRole): Account {
    return {
      ...builder,
      platform,
      word,
      role,
      told,
      as: (other) => once(`member ${other}`, async () => seenBy(await join(other), other)),
      freshMember: (other = role) => join(other),
      name: (kind) => `${word} ${kind} ${++count}`,
      key: (kind) => `${word}-${kind}-${++count}`,
      mail: (kind) => `${word}-${kind}-${++count}@portico.example`,
      once,
      async call<T>(method: string, path: string, body?: unknown) {
        const answer = await ask(method, path, { token: owner.token, ...(body !== undefined && { body }) })
        expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
        return answer.json as T
      },
      ask,
    }
  }

  async function ask(method: string, path: string, sent: Sent = {}, client: Pick<HttpClient, 'call'> = platform) {
    const answer = await client.call(method, path, sent)
    told.push({ sent: `${path} ${JSON.stringify(sent.body)}`, answer })
    return answer
  }
}

/** One request that an operation takes. Made anew for each time that it is to take effect. */
export interface GoodRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The status to expect. */
  readonly status?: number
  /** Who asks, where that is not the one whose request it is. */
  readonly token?: string
}

export type PlatformOperation = Operation<never>

/** What the two doors of `/v1/platform` lead to. */
export const platformOperations = [
  ...visitorRegistry.operations,
  ...platformRegistry.operations,
] as unknown as readonly PlatformOperation[]

export function isOpen({ credentials }: Pick<Operation<BaseContext>, 'credentials'>): boolean {
  return credentials.includes('none')
}

export interface Change extends Sent {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  /** The process to ask. */
  readonly client?: Pick<HttpClient, 'call'>
}

/** A request as it stands in the table, with what a test changes about it. */
export function send(account: Account, operation: PlatformOperation, good: GoodRequest, change: Change = {}) {
  const { params, query = good.query, client, ...sent } = change
  const path = pathOf(operation, { ...good.params, ...params })
  const token = isOpen(operation) ? {} : { token: good.token ?? account.token }
  const body = good.body !== undefined && sent.raw === undefined && !('body' in sent) ? { body: good.body } : {}
  const address = query === undefined ? path : `${path}?${query}`
  const headers = { ...good.headers, ...sent.headers }
  return account.ask(operation.method, address, { ...token, ...body, ...sent, headers }, client)
}

export function pathOf({ path }: Pick<PlatformOperation, 'path'>, params: GoodRequest['params'] = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!))
}

export function parametersOf({ path }: Pick<PlatformOperation, 'path'>): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
}

/** Is something made once, because it only has to be there, or anew, because it is used up? */
export type Freshness = 'once' | 'new'

export function made<T>(account: Account, name: string, freshness: Freshness, make: () => Promise<T>): Promise<T> {
  return freshness === 'new' ? make() : account.once(name, make)
}
