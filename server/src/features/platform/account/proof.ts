import { type Failure, fail } from '../../../kernel/errors.ts'
import type { VisitorContext } from '../../../shared/platform-context.ts'
import { isRecoveryCode, totpStepOf } from './rules.ts'
import type { BuilderRow, ProvenFactor } from './store.ts'

/** Guesses at the passwords and codes of builders, from wherever they are made, are counted together. */
export const realm = 'builders'

/** One answer, whichever of the three it is. */
export function signInFailed(): Failure {
  return fail('sign_in_failed', { message: 'The email address, the password or the code is wrong.' })
}

type Services = Pick<VisitorContext, 'passwords' | 'secrets' | 'mint' | 'now'>

/** Bound to the person: what was sealed for one opens for nobody else. */
export function totpContext(builderId: string): string[] {
  return ['builder', builderId, 'totp']
}

/**
 * Holds a password, and a code where the person has a second factor, against what is kept. Takes as long for nobody as for
 * somebody. Undefined: one of them is wrong. Throws `totp_required` where the password is right and the code is missing.
 * Whether the code was used before, and whether a recovery code exists, is for `claimFactor` to say.
 */
export async function prove(
  context: Services,
  builder: BuilderRow | undefined,
  { password, code }: { readonly password: string; readonly code: string | undefined },
): Promise<ProvenFactor | undefined> {
  const isRight = await context.passwords.verify(builder?.passwordHash ?? null, password)
  if (!isRight || !builder) return undefined
  if (builder.totpConfirmedAt === null) return { kind: 'none' }
  if (code === undefined) throw fail('totp_required')
  if (isRecoveryCode(code)) return { kind: 'recovery', codeHash: context.mint.hashOf(code) }
  const step = totpStepOf(await openTotp(context, builder), code, builder.totpLastStep, context.now)
  return step === undefined ? undefined : { kind: 'step', step }
}

/** The shared secret in base32. */
export async function openTotp({ secrets }: Pick<Services, 'secrets'>, builder: BuilderRow): Promise<string> {
  return (await secrets.open(builder.totpSecret!, totpContext(builder.builderId))).toString('utf8')
}
