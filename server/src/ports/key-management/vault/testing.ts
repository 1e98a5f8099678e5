import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Speaks as much of the HTTP API of Vault as the adapter uses, with the statuses and errors of the real one: Transit keys
 * with versions, tokens, an AppRole.
 */
export interface FakeVault {
  readonly address: string
  /** Tokens that it takes; each of an AppRole is added by its login. */
  readonly tokens: Set<string>
  /** Every path that was asked for. */
  readonly requests: string[]
  /** Answers with this instead, until it is taken away. */
  behave: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** Makes the key, or its next version. */
  rotate(name: string): void
  close(): Promise<void>
}

export const appRole = { roleId: 'role-of-portico', secretId: 'secret-of-portico' }

interface Said {
  readonly status: number
  readonly body: object
}

const errors = (status: number, ...problems: string[]): Said => ({ status, body: { errors: problems } })

export async function startFakeVault(): Promise<FakeVault> {
  const keys = new Map<string, Buffer[]>()
  const tokens = new Set<string>()
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    requests.push(request.url ?? '')
    if (vault.behave) return vault.behave(request, response)
    const { status, body } = answer(request, await readBody(request), { keys, tokens })
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const vault: FakeVault = {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokens,
    requests,
    behave: undefined,
    rotate: (name) => void keys.set(name, [...(keys.get(name) ?? []), randomBytes(32)]),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return vault
}

interface State {
  readonly keys: Map<string, Buffer[]>
  readonly tokens: Set<string>
}

function answer(request: IncomingMessage, body: Record<string, string>, { keys, tokens }: State): Said {
  if (request.url === '/v1/auth/approle/login') {
    const known = body['role_id'] === appRole.roleId && body['secret_id'] === appRole.secretId
    if (!known) return errors(400, 'invalid role or secret ID')
    const token = `hvs.${randomBytes(12).toString('base64url')}`
    tokens.add(token)
    return { status: 200, body: { auth: { client_token: token, lease_duration: 3600 } } }
  }
  if (!tokens.has(String(request.headers['x-vault-token']))) return errors(403, 'permission denied')
  const [, verb, name = ''] = /^\/v1\/transit\/(keys|encrypt|decrypt)\/([\w.-]+)$/.exec(request.url ?? '') ?? []
  const versions = keys.get(name)
  const method = verb === 'keys' ? 'GET' : 'POST'
  if (!verb || request.method !== method || (!versions && verb === 'keys')) return errors(404)
  if (!versions) return errors(400, 'encryption key not found')
  if (verb === 'keys') {
    return { status: 200, body: { data: { name, type: 'aes256-gcm96', latest_version: versions.length } } }
  }
  const aad = Buffer.from(body['associated_data'] ?? '', 'base64')
  return verb === 'encrypt'
    ? encrypt(versions, body['plaintext'] ?? '', aad)
    : decrypt(versions, body['ciphertext'] ?? '', aad)
}

function encrypt(versions: readonly Buffer[], plaintext: string, aad: Buffer): Said {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', versions.at(-1)!, nonce).setAAD(aad)
  const sealed = [nonce, cipher.update(plaintext, 'base64'), cipher.final(), cipher.getAuthTag()]
  const ciphertext = `vault:v${versions.length}:${Buffer.concat(sealed).toString('base64')}`
  return { status: 200, body: { data: { ciphertext, key_version: versions.length } } }
}

function decrypt(versions: readonly Buffer[], ciphertext: string, aad: Buffer): Said {
  const [, version, base64 = ''] = /^vault:v(\d+):(.*)$/.exec(ciphertext) ?? []
  const key = versions[Number(version) - 1]
  if (!key) return errors(400, 'invalid ciphertext: no prefix')
  const bytes = Buffer.from(base64, 'base64')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(aad).setAuthTag(bytes.subarray(-16))
    const plaintext = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    return { status: 200, body: { data: { plaintext: plaintext.toString('base64') } } }
  } catch {
    return errors(400, 'cipher: message authentication failed')
  }
}

async function readBody(request: IncomingMessage): Promise<Record<string, string>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())
}
