import type { Operation } from '../../kernel/operation.ts'
import { builderRoles, scopesOfRole } from '../../kernel/scopes.ts'
import { generatedNotice, tableOf } from './markdown.ts'

type Listed = Pick<Operation, 'id' | 'method' | 'path' | 'area' | 'summary' | 'credentials' | 'scope'>

/** `docs/platform-operations.md`: what builders and the users of a tenant host can do, by resource family. */
export function renderPlatformOperations(operations: {
  readonly platform: readonly Listed[]
  readonly tenant: readonly Listed[]
}): string {
  const { platform, tenant } = operations
  return `# Operations of the platform and of tenant hosts

${generatedNotice('server/src/operations.ts')}

## Platform

${platform.length} operations under \`/v1/platform\`, on the host of the API. Their contract, projected to the role of the
member who asks, is \`GET /v1/platform/openapi.json\`.

${tablesOf(platform, ['Scope', 'Roles'], ({ scope, credentials }) => [
  scope ? `\`${scope}\`` : '',
  credentials.includes('none') ? 'no credential needed' : rolesWith(scope),
])}

## Tenant hosts

${tenant.length} operations under \`/api\`, on the host of an organization. Users sign in with a cookie; these operations stand
in no contract, because programs use the API host instead.

${tablesOf(tenant, ['Needs'], ({ credentials }) => [credentials.includes('none') ? '' : 'a session'])}
`
}

function tablesOf(
  operations: readonly Listed[],
  more: readonly string[],
  cellsOf: (operation: Listed) => readonly string[],
): string {
  const areas = [...Map.groupBy(operations, (operation) => operation.area)]
  return areas
    .map(([area, members]) => {
      const rows = members.map((one) => [
        `\`${one.method} ${one.path}\``,
        one.summary,
        `\`${one.id}\``,
        ...cellsOf(one),
      ])
      return `### ${area}\n\n${tableOf(['Route', 'Meaning', 'Operation', ...more], rows)}`
    })
    .join('\n\n')
}

function rolesWith(scope: Listed['scope']): string {
  const roles = builderRoles.filter((role) => scope === null || scopesOfRole[role].some((one) => one === scope))
  return roles.length === builderRoles.length ? 'all' : roles.join(', ')
}
