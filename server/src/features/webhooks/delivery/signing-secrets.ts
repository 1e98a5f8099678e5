import type { Clock } from '../../../kernel/clock.ts'
import type { Secrets } from '../../../shared/secrets.ts'
import { sealedFor } from '../signing-secret.ts'
import type { Destination } from './delivery.ts'

export interface SigningSecrets {
  /** What a delivery is signed with now: the secret, and the one it replaces while that is still accepted. */
  of(destination: Destination): Promise<readonly string[]>
}

const rememberedMax = 5000

/** Opens each sealed secret once and remembers it by its sealed bytes, so that a rotation is followed at once. */
export function createSigningSecrets({
  secrets,
  clock,
}: {
  readonly secrets: Pick<Secrets, 'open'>
  readonly clock: Clock
}): SigningSecrets {
  const opened = new Map<string, string>()

  async function open(sealed: Buffer, subscriptionId: string): Promise<string> {
    const key = `${subscriptionId} ${sealed.toString('base64')}`
    const known = opened.get(key)
    if (known !== undefined) return known
    const secret = (await secrets.open(sealed, sealedFor(subscriptionId))).toString()
    if (opened.size >= rememberedMax) opened.delete(opened.keys().next().value!)
    opened.set(key, secret)
    return secret
  }

  return {
    async of({ subscriptionId, secretSealed, previousSecretSealed, previousSecretExpiresAt }) {
      const now = clock.now()
      const overlaps = previousSecretExpiresAt !== null && Date.parse(previousSecretExpiresAt) > now
      const current = await open(secretSealed, subscriptionId)
      return previousSecretSealed && overlaps ? [current, await open(previousSecretSealed, subscriptionId)] : [current]
    },
  }
}
