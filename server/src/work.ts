import type { WorkKind } from './shared/operations/kind.ts'

/** Every kind of work that goes on after the answer. What is not in this list is carried on by nobody. */
export const workKinds: readonly WorkKind[] = []
