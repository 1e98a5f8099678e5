/** The native modules (contract 5). Their descriptors are in features/modules; a test holds the two lists to each other. */
export const moduleKeys = [
  'contacts',
  'companies',
  'leads',
  'deals',
  'tasks',
  'notes',
  'activities',
  'calendar-events',
  'appointments',
  'inbox',
  'tickets',
  'products',
  'quotes',
  'orders',
  'invoices',
  'payments',
  'documents',
  'projects',
  'knowledge-articles',
] as const

type ModuleScope = `modules.${(typeof moduleKeys)[number]}.${'read' | 'write'}`

function moduleScopes(): Readonly<Record<ModuleScope, string>> {
  const both = moduleKeys.flatMap((key) => {
    const name = key === 'inbox' ? 'items of the inbox' : key.replaceAll('-', ' ')
    return [
      [`modules.${key}.read`, `Read ${name}.`],
      [`modules.${key}.write`, `Create, change, archive and restore ${name}.`],
    ]
  })
  return Object.fromEntries(both) as Record<ModuleScope, string>
}

/** Every scope, with what it lets its bearer do (specification 5, contract 2). Module scopes are made from module keys. */
export const scopes = {
  'records.read': 'Read records of objects; the fields of native ones take the scope of their module as well.',
  'records.write':
    'Create, update, archive and restore records of objects; native ones take the write scope of their module as well.',
  'relationships.read': 'Read relationships between records.',
  'relationships.write': 'Create and delete relationships between records.',
  ...moduleScopes(),
  'modules.global-search.read': 'Search across modules and objects.',
  'actions.invoke': 'Invoke actions.',
  'workflows.read': 'Read workflows and their runs.',
  'workflows.run': 'Run workflows.',
  'operations.read': 'Read the status of long-running operations.',
  'operations.manage': 'Cancel long-running operations.',
  'webhooks.read': 'Read webhook subscriptions and deliveries.',
  'webhooks.manage': 'Manage webhook subscriptions and retry deliveries.',
  'logs.read': 'Read diagnostics of requests by correlation id.',
  'assets.read': 'List and download assets.',
  'assets.write': 'Upload and delete assets.',
  'ai.read': 'Search with AI and read its status.',
  'ai.write': 'Ingest records and rebuild AI indexes.',
  'mcp.use': 'Use the MCP transport.',
  'outside-forms.manage': 'Manage outside form endpoints.',
  'outside-forms.read': 'Read outside form submissions.',
  'connectors.read': 'List connectors.',
  'connectors.manage': 'Manage connectors and their secrets.',
  'connectors.invoke': 'Invoke connector operations.',
  'payments.manage': 'Manage payment connectors.',
  'appliances.read': 'List installed services.',
  'appliances.invoke': 'Invoke endpoints of installed services.',
  'pages.draft': 'Read, save and validate page drafts.',
  'pages.publish': 'Publish and roll back pages.',
} as const

export type ApplicationScope = keyof typeof scopes
export const allScopes = Object.keys(scopes) as ApplicationScope[]

/** What the members of a builder account may do; their roles grant these (features/platform). */
export const platformScopes = {
  'account.read': 'Read the account and its team.',
  'account.manage': 'Change the account and its team.',
  'applications.read': 'Read applications, models and releases.',
  'applications.manage': 'Create, change and archive applications.',
  'models.edit': 'Edit and validate the draft of a model.',
  'models.publish': 'Publish and roll back releases.',
  'organizations.read': 'Read customer organizations, users and invitations.',
  'organizations.manage': 'Provision and change customer organizations, users and invitations.',
  'credentials.read': 'List credentials.',
  'credentials.manage': 'Issue, rotate and revoke credentials.',
  'billing.read': 'Read plans, usage and entitlements.',
  'audit.read': 'Read the audit log.',
} as const

export type PlatformScope = keyof typeof platformScopes
export const allPlatformScopes = Object.keys(platformScopes) as PlatformScope[]

export type Scope = ApplicationScope | PlatformScope
export const scopeDescriptions: Readonly<Record<Scope, string>> = { ...scopes, ...platformScopes }

export const builderRoles = ['owner', 'admin', 'developer', 'billing'] as const
export type BuilderRole = (typeof builderRoles)[number]

/** What the roles of an account may do. */
export const scopesOfRole: Readonly<Record<BuilderRole, readonly PlatformScope[]>> = {
  owner: allPlatformScopes,
  admin: allPlatformScopes,
  developer: [
    'account.read',
    'applications.read',
    'applications.manage',
    'models.edit',
    'models.publish',
    'organizations.read',
    'organizations.manage',
    'credentials.read',
    'credentials.manage',
  ],
  billing: ['account.read', 'applications.read', 'billing.read'],
}
