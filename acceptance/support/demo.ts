/** `demo.json` (contract 1): what a first client needs. */
export interface DemoUser {
  readonly userId: string
  readonly email: string
  readonly password: string
  readonly token: string
}

export const userNames = ['owner', 'sales', 'support', 'outsider'] as const
export type UserName = (typeof userNames)[number]

export interface DemoOrganization {
  readonly organizationId: string
  readonly slug: string
  readonly tenantHost: string
  readonly credentials: {
    readonly live: string
    readonly liveRecordsRead: string
    readonly liveNoScopes: string
    readonly draft: string
  }
  readonly dataRoles: { readonly sales: string; readonly support: string }
  readonly locations: { readonly north: string; readonly south: string }
  readonly users: Readonly<Record<UserName, DemoUser>>
}

export interface DemoApp {
  readonly saasAppId: string
  readonly appKey: string
  readonly organizations: readonly DemoOrganization[]
}

export interface Demo {
  readonly baseUrl: string
  readonly builder: { readonly email: string; readonly password: string; readonly token: string }
  readonly apps: readonly DemoApp[]
  readonly inactiveToken: string
  readonly expiredToken: string
  readonly revokedToken: string
}
