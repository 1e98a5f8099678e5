import type { Operation } from '../../../kernel/operation.ts'
import { Strict } from '../../../kernel/schemas.ts'
import { contractOperation, contractReply } from '../../../shared/contract-document.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'

const getPlatformContract = platformOperation({
  ...contractOperation,
  id: 'developerPlatformContractGet',
  path: '/v1/platform/openapi.json',
  area: 'Platform contract',
  summary: 'Read the OpenAPI document of what your role may do.',
  credentials: ['bld'],
  params: Strict({}),

  async handler({ caller, contract }) {
    return contractReply(contract.project(caller))
  },
})

export const platformContractOperations: readonly Operation<PlatformContext>[] = [getPlatformContract]
