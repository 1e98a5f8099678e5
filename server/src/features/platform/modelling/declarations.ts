import * as schema from './schema.ts'

/** What the operations of drafts and releases have in common. */
export const modelBase = '/v1/platform/applications/{saasAppId}/model'
export const draftBase = `${modelBase}/draft`
export const etag = {
  ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"4"' },
}
export const common = { area: 'Models', credentials: ['bld'], mcp: false } as const
export const reading = { ...common, scope: 'applications.read', rateClass: 'read', transaction: 'read' } as const
export const editing = {
  ...common,
  scope: 'models.edit',
  rateClass: 'write',
  transaction: 'write',
  ifMatch: true,
  responses: { 200: schema.Draft },
  responseHeaders: etag,
} as const
