import { fail } from '../../kernel/errors.ts'
import type { Operation } from '../../kernel/operation.ts'
import { AppParams, pageSizeDefault, Strict } from '../../kernel/schemas.ts'
import { withinScopes } from '../../shared/access/permissions.ts'
import { type Context, operation } from '../../shared/context.ts'
import { envelopeOf, knowable, type Standing } from '../../shared/outbox/disclosure.ts'
import { eventTypes, mayHear } from '../../shared/outbox/event-types.ts'
import { profileOf } from '../../shared/records/scope.ts'
import { EventPage, EventQuery } from './event-schema.ts'
import { findEvents } from './event-store.ts'
import { requireEventType, requireHearing, requireReadable } from './rules.ts'
import { EventTypeList } from './schema.ts'

const reading = {
  credentials: ['live'],
  scope: 'webhooks.read',
  rateClass: 'read',
  transaction: 'read',
} as const

const listTypes = operation({
  ...reading,
  id: 'developerWebhookEventTypesList',
  method: 'GET',
  path: '/v1/apps/{saasAppId}/webhook-event-types',
  area: 'Webhooks',
  summary: 'List the types of events, with the shape of their data.',
  description:
    'What subscriptions can ask for. A new shape of data is a new version; subscriptions name the one that they take.',
  mcp: true,
  params: Strict(AppParams),
  responses: { 200: EventTypeList },
  errors: [],

  async handler() {
    return { status: 200, body: { items: told } }
  },
})

const told = eventTypes.map(({ eventKey, eventVersion, scopes, classification, description, data, example }) => {
  return { eventKey, eventVersion, scopes, classification, description, dataSchema: unmarked(data), example }
})

/** Without what only the contract makes something of. */
function unmarked(schema: object): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema, (key, value) => (key.startsWith('x-') ? undefined : value)))
}

/** Partitions of events go when all of them are older. */
const keptMs = 30 * 24 * 60 * 60 * 1000

const feed = operation({
  ...reading,
  id: 'developerEventsList',
  method: 'GET',
  path: '/v1/apps/{saasAppId}/events',
  area: 'Events',
  summary: 'Read the events of the organization in their order, for consumers that cannot be called.',
  description: `What webhooks deliver, as a log to read from a position: ask with the \`nextCursor\` of the answer before, now or
later, and no event is missed. Events come in the order in which they were committed, as far as the credential may read them:
those of records take \`records.read\`, for instance. They are kept for 30 days, and a cursor
holds as long. \`eventKey\` and \`objectKey\` may change from one request to the next.`,
  // A log is read by programs; a model that begins at its end learns nothing.
  mcp: false,
  params: Strict(AppParams),
  query: EventQuery,
  responses: { 200: EventPage },
  errors: [
    'cursor_invalid',
    'cursor_mismatch',
    'cursor_expired',
    'page_size_exceeded',
    'permission_denied',
    'webhook_event_unknown',
  ],

  async handler(context, { query }) {
    const { tx, caller, cursors, now } = context
    const { pageSize = pageSizeDefault, start } = query
    if (start !== undefined && query.cursor !== undefined) {
      throw fail('validation_failed', { field: 'start', message: 'Send either `start` or `cursor`, not both.' })
    }
    const eventKeys = wantedKeys(context, query.eventKey)
    const afterPosition = positionOf(context, query.cursor)
    const standing = await standingOf(context)
    const { objects } = standing.profile
    const objectKeys = query.objectKey
    if (objectKeys) requireReadable(objectKeys, [...objects.keys()], 'objectKey')
    const objectIds = (objectKeys ?? [...objects.keys()]).map((key) => objects.get(key)!.object.objectId)
    // One more than asked for tells whether there is more; none where it begins after the latest.
    const limit = start === 'latest' ? 0 : pageSize + 1
    const { rows, end, isCut } = await findEvents(tx, caller, {
      afterPosition,
      eventKeys,
      objectIds,
      objectKeys,
      limit,
    })
    const page = rows.slice(0, pageSize)
    const isFull = rows.length > pageSize
    const position = isFull ? page.at(-1)!.position : Math.max(end, afterPosition)
    // The transaction at hand is bound to the organisation already.
    const events = await knowable({ inOrganization: (_, work) => work(tx) }, standing, page)
    const items = events.map((event) => envelopeOf(event, standing))
    const nextCursor = cursors.seal(feedOf(context), [String(position), new Date(now).toISOString()])
    return { status: 200, body: { items, nextCursor, hasMore: isFull || isCut } }
  },
})

/** A place in the log, whatever is asked for there: the cursor is bound to the organisation alone. */
function feedOf({ caller }: Context): readonly string[] {
  return ['events', caller.organizationId]
}

function positionOf(context: Context, cursor: string | undefined): number {
  if (cursor === undefined) return 0
  const [position, issuedAt] = context.cursors.open(feedOf(context), cursor)
  if (Date.parse(issuedAt!) < context.now - keptMs) throw fail('cursor_expired', { field: 'cursor' })
  return Number(position)
}

/** Those that are asked for by name, or else all that the scopes of the caller show. */
function wantedKeys({ caller }: Context, asked: readonly string[] | undefined): string[] {
  if (asked === undefined) {
    return eventTypes.filter((type) => mayHear(type, caller)).map(({ eventKey }) => eventKey)
  }
  for (const [i, eventKey] of asked.entries()) {
    requireHearing(requireEventType(eventKey, `eventKey[${i}]`), caller)
  }
  return [...asked]
}

async function standingOf(context: Context): Promise<Standing> {
  const { caller } = context
  return { caller, profile: withinScopes(await profileOf(context), caller), active: true }
}

export const eventOperations: readonly Operation<Context>[] = [listTypes, feed]
