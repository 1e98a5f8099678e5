import Type from 'typebox'
import { type Operation, RawBody, type Reply } from '../kernel/operation.ts'

/** What operations that answer with an OpenAPI document declare, and how they answer (specification 4.1). */
export const contractOperation = {
  method: 'GET',
  scope: null,
  rateClass: 'read',
  transaction: 'read',
  mcp: false, // a model discovers tools through MCP itself; this document would only fill its context
  description:
    'The body is canonical (RFC 8785): its SHA-256 is the fingerprint. Pin it, and regenerate clients when it changes. ' +
    'A document that shows an operation is no permission to invoke it.',
  responses: {
    200: Type.Object(
      {},
      { additionalProperties: true, title: 'ContractDocument', description: 'An OpenAPI 3.1.1 document.' },
    ),
  },
  responseHeaders: {
    'X-Service-Contract-SHA256': {
      description: 'The fingerprint of the whole projected contract: 64 lowercase hex characters.',
      example: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    },
    ETag: { description: 'The same fingerprint as a strong tag.', example: '"9f86d081…0a08"' },
    'Cache-Control': { description: 'Always `private, no-store`.', example: 'private, no-store' },
  },
  errors: [],
} as const satisfies Partial<Operation>

/** Answers with a document, as it stands, and its fingerprint. */
export function contractReply({ text, sha256 }: { readonly text: string; readonly sha256: string }): Reply {
  return {
    status: 200,
    body: new RawBody(text, 'application/json; charset=utf-8'),
    headers: { 'x-service-contract-sha256': sha256, etag: `"${sha256}"`, 'cache-control': 'private, no-store' },
  }
}
