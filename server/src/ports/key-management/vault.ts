/**
 * The Vault adapter: the key-encryption key is a key of the Transit engine and never leaves it. Data keys are sent there
 * to be encrypted and decrypted, bound to their context by `associated_data` (Vault 1.13 or later, OpenBao).
 *
 * https://developer.hashicorp.com/vault/api-docs/secret/transit
 */
import { type KeyManagement, KeyManagementError, requireKeyLength } from './port.ts'
import { connectVault, type VaultConnection } from './vault/connection.ts'

export interface VaultOptions extends VaultConnection {
  /** Mount and name of the key: `transit/portico`. */
  readonly key: string
}

/** Ciphers that authenticate a context along with what they encrypt. */
const keyTypes = ['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305']

export function keysOfVault({ key, ...connection }: VaultOptions): KeyManagement {
  const vault = connectVault(connection)
  const slash = key.lastIndexOf('/')
  const [mount, name] = [key.slice(0, slash), key.slice(slash + 1)]
  const place = `Vault (${key})`
  const idOf = (version: number) => `vault:${key}:v${version}`
  const missing = `There is no key ${key} in Vault: vault secrets enable -path=${mount} transit; vault write -f ${mount}/keys/${name}`
  const permissions =
    `Vault refuses this token. Its policy must allow "read" on ${mount}/keys/${name} and "update" on ` +
    `${mount}/encrypt/${name} and ${mount}/decrypt/${name}, and it must not have expired.`
  const sentences = { missing, permissions }

  /** Read before every encryption: a policy that allows "create" would make a key of a name that is misspelt. */
  async function currentKeyId(): Promise<string> {
    const data = await vault.request({ method: 'GET', path: `${mount}/keys/${name}`, sentences })
    const { type, latest_version: version } = data
    if (!keyTypes.includes(String(type)) || typeof version !== 'number') {
      throw new KeyManagementError('refused', `The key ${key} of Vault must be of type ${keyTypes.join(', ')}.`)
    }
    return idOf(version)
  }

  return {
    place,
    holds: (keyId) => keyId.startsWith(`vault:${key}:v`),
    currentKeyId,
    async wrap(dataKey, context) {
      requireKeyLength(dataKey)
      await currentKeyId()
      const plaintext = Buffer.from(dataKey).toString('base64')
      const body = { plaintext, associated_data: Buffer.from(context).toString('base64') }
      const { ciphertext } = await vault.request({
        method: 'POST',
        path: `${mount}/encrypt/${name}`,
        body,
        sentences,
      })
      const version = /^vault:v(\d{1,9}):./.exec(String(ciphertext))?.[1]
      if (version === undefined) throw new KeyManagementError('refused', 'Vault answers with no ciphertext.')
      return { wrapped: Buffer.from(String(ciphertext)), keyId: idOf(Number(version)) }
    },
    async unwrap({ wrapped, keyId }, context) {
      if (!keyId.startsWith(`vault:${key}:v`)) {
        throw new KeyManagementError('unknown_key', `${place} is not the key ${keyId}.`)
      }
      const body = { ciphertext: wrapped.toString(), associated_data: Buffer.from(context).toString('base64') }
      const { plaintext } = await vault.request({
        method: 'POST',
        path: `${mount}/decrypt/${name}`,
        body,
        sentences,
      })
      if (typeof plaintext !== 'string') throw new KeyManagementError('refused', 'Vault answers with no plaintext.')
      return Buffer.from(plaintext, 'base64')
    },
  }
}
