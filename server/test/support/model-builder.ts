import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { allScopes } from '../../src/kernel/scopes.ts'
import type { FieldDocument, ModelDocument } from '../../src/shared/modelling/document.ts'
import type { Answer, HttpClient } from './http-client.ts'
import type { Platform, TestBuilder } from './platform.ts'

/** A builder who edits and publishes the model of an application over HTTP, and customers who work with what it publishes. */
export interface ModelBuilder {
  readonly builder: TestBuilder
  readonly saasAppId: string
  /** Below `/v1/platform/applications/{saasAppId}`. */
  ask<T = Readonly<Record<string, unknown>>>(method: string, path: string, body?: unknown): Promise<Answer<T>>
  /** Saves the document as the draft and publishes it. */
  publish(document: ModelDocument, more?: object): Promise<Answer>
  /** The same, and expects that it works. */
  released(document: ModelDocument, more?: object): Promise<void>
  customer(): Promise<Customer>
}

export interface Customer {
  readonly organizationId: string
  readonly token: string
  records<T = Readonly<Record<string, unknown>>>(
    method: string,
    path: string,
    body?: unknown,
    client?: Pick<HttpClient, 'call'>,
  ): Promise<Answer<T>>
  /** Creates a record and returns its id. */
  create(objectKey: string, fields: object): Promise<string>
}

export async function newModelBuilder(platform: Platform): Promise<ModelBuilder> {
  const builder = await platform.newAccount()
  const { token } = builder
  const appKey = `app-${randomBytes(4).toString('hex')}`
  const made = await platform.call<{ saasAppId: string }>('POST', '/v1/platform/applications', {
    token,
    body: { appKey, name: 'Acme' },
  })
  expect(made.status, made.text).toBe(201)
  const { saasAppId } = made.json
  const base = `/v1/platform/applications/${saasAppId}`

  async function ask<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    return platform.call<T>(method, `${base}${path}`, { token, ...(body !== undefined && { body }) })
  }

  async function publish(document: ModelDocument, more: object = {}): Promise<Answer> {
    const saved = await ask('PUT', '/model/draft', { document })
    expect(saved.status, saved.text).toBe(200)
    return ask('POST', '/model/draft:publish', more)
  }

  return {
    builder,
    saasAppId,
    ask,
    publish,
    async released(document, more) {
      const answer = await publish(document, more)
      expect(answer.status, answer.text).toBe(201)
    },
    customer: () => newCustomer(platform, token, saasAppId),
  }
}

async function newCustomer(platform: Platform, token: string, saasAppId: string): Promise<Customer> {
  const slug = `org-${randomBytes(4).toString('hex')}`
  const organization = await platform.call<{ organizationId: string }>(
    'POST',
    `/v1/platform/applications/${saasAppId}/organizations`,
    { token, body: { name: slug, slug } },
  )
  expect(organization.status, organization.text).toBe(201)
  const { organizationId } = organization.json
  const issued = await platform.call<{ token: string }>(
    'POST',
    `/v1/platform/organizations/${organizationId}/credentials`,
    { token, body: { kind: 'live', displayName: 'Server', scopes: allScopes } },
  )
  expect(issued.status, issued.text).toBe(201)

  async function records<T>(method: string, path: string, body?: unknown, client: Pick<HttpClient, 'call'> = platform) {
    const sent = { token: issued.json.token, ...(body !== undefined && { body }) }
    return client.call<T>(method, `/v1/apps/${saasAppId}/objects${path}`, sent)
  }

  return {
    organizationId,
    token: issued.json.token,
    records,
    async create(objectKey, fields) {
      const answer = await records<{ recordId: string }>('POST', `/${objectKey}/records`, { fields })
      expect(answer.status, answer.text).toBe(201)
      return answer.json.recordId
    },
  }
}

export const field = (fieldKey: string, more: Partial<FieldDocument> = {}): FieldDocument => ({
  fieldKey,
  label: fieldKey,
  dataType: 'text',
  ...more,
})

/** A model of one object, `deal`, whose records are named by `name`. */
export function dealModel(fields: readonly FieldDocument[] = [], more: Partial<ModelDocument> = {}): ModelDocument {
  const deal = { objectKey: 'deal', label: 'Deal', pluralLabel: 'Deals', nameField: 'name' }
  return { objects: [{ ...deal, fields: [field('name'), ...fields] }], ...more }
}

export interface Draft {
  readonly document: ModelDocument
  readonly revision: number
  readonly basedOnRelease: number
}

export interface Release {
  readonly releaseNumber: number
  readonly summary: string
  readonly rolledBackTo: number | null
  readonly document: ModelDocument
}

interface Validity {
  readonly valid: boolean
  readonly issues: readonly { readonly path: string; readonly code: string; readonly message: string }[]
}

export async function draftOf(model: ModelBuilder): Promise<Draft> {
  return (await model.ask<Draft>('GET', '/model/draft')).json
}

export async function validityOf(model: ModelBuilder): Promise<Validity> {
  return (await model.ask<Validity>('POST', '/model/draft:validate')).json
}

interface ObjectSchema {
  readonly fields: readonly { readonly fieldKey: string; readonly indexState: string }[]
  readonly searchState: string
}

export function schemaOf(customer: Customer, objectKey = 'deal'): Promise<Answer<ObjectSchema>> {
  return customer.records<ObjectSchema>('GET', `/${objectKey}/schema`)
}

/** The fields of deals that the customer sees. */
export async function keysOf(customer: Customer): Promise<string[]> {
  return (await schemaOf(customer)).json.fields.map(({ fieldKey }) => fieldKey)
}

/** The deals that a search finds. */
export async function search(customer: Customer, body: object): Promise<readonly object[]> {
  return (await customer.records<{ records: object[] }>('POST', '/deal/records/search', body)).json.records
}

/** Waits for what is built in the background. */
export async function eventually(what: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + 10_000
  while (!(await what())) {
    if (Date.now() > until) throw new Error('It did not come to that in time.')
    await pause(20)
  }
}
