/**
 * The error catalogue: one row per stable code. `docs/errors.md`, the OpenAPI document and the HTTP statuses derive
 * from it (specification 2.2 and 7). A public message never repeats what the caller may not know: no identifiers of
 * other tenants, no SQL, no cause. The cause goes to the log, under the correlation id.
 */
export interface ErrorEntry {
  readonly status: number
  /** Safe, human-readable, a full sentence. */
  readonly message: string
  /** May the same request succeed later without a change? Then the answer carries `Retry-After`. */
  readonly retryable?: true
}

const table = {
  // 400: the request itself is wrong.
  malformed_request: { status: 400, message: 'The request is not valid HTTP.' },
  invalid_json: { status: 400, message: 'The body is not valid JSON.' },
  json_too_deep: { status: 400, message: 'The JSON body is nested too deeply.' },
  validation_failed: { status: 400, message: 'The request is not valid. `details` names each field to correct.' },
  unknown_field: { status: 400, message: 'The request names a field that does not exist. `details` names it.' },
  page_size_exceeded: { status: 400, message: 'The page size is above the maximum.' },
  page_and_cursor: { status: 400, message: 'Send either `page` or `cursor`, not both.' },
  cursor_invalid: { status: 400, message: 'The cursor is not one that this service issued, or it was changed.' },
  cursor_mismatch: {
    status: 400,
    message: 'The cursor belongs to another query. Send it with the filter, sort and search that it was issued for.',
  },
  cursor_expired: {
    status: 400,
    message: 'The cursor is older than what is kept. Begin without one, and compare with what you have.',
  },
  filter_invalid: { status: 400, message: 'The filter is not valid. `details` names the position to correct.' },
  sort_invalid: { status: 400, message: 'The sort is not valid. `details` names the value to correct.' },
  field_read_only: { status: 400, message: 'A field in the request is set by the service and cannot be written.' },
  required_field_missing: { status: 400, message: 'A required field has no value. `details` names it.' },
  field_value_invalid: { status: 400, message: 'The value of a field is not valid. `details` names the field.' },
  record_too_large: {
    status: 400,
    message: 'The values of the record do not fit together. Shorten some, or leave some empty.',
  },
  reference_not_found: {
    status: 400,
    message:
      'The request refers to a record, relationship, user, role or location that does not exist. `details` names the field.',
  },
  slug_reserved: {
    status: 400,
    message: 'This slug is reserved: it is a host name that the service keeps for itself.',
  },
  ownership_conflict: { status: 400, message: 'Give a record an owner or a DataRole, not both.' },
  import_file_invalid: {
    status: 400,
    message: 'The file cannot be read as what it is said to be. Nothing was written; `details` says where.',
  },
  import_columns_invalid: {
    status: 400,
    message: 'The columns of the file do not fit. Nothing was written; `details` names each that does not.',
  },
  import_rows_invalid: { status: 400, message: 'No row of the file could be taken. `errorsUrl` says why of each.' },
  import_too_large: { status: 400, message: 'The file has more than 1,000,000 rows. Import it in parts.' },
  export_too_large: {
    status: 400,
    message: 'The export would have more than 5,000,000 rows or 2 GiB. Narrow it, or name the `fields` that you need.',
  },
  result_too_large: {
    status: 400,
    message: 'The answer would be larger than 32 MB. Ask for fewer rows, or name the `fields` that you need.',
  },
  idempotency_key_invalid: {
    status: 400,
    message: 'Idempotency-Key must be 1 to 255 visible ASCII characters.',
  },
  batch_failed: {
    status: 400,
    message: 'Nothing was written: at least one item of the atomic batch failed. `details` names each.',
  },
  reset_token_invalid: {
    status: 400,
    message: 'The link to choose a new password has been used or replaced, or has expired. Ask for a new one.',
  },

  // 401: who are you?
  credential_missing: { status: 401, message: 'Send a credential as `Authorization: Bearer <token>`.' },
  credential_invalid: { status: 401, message: 'The credential is malformed, unknown or revoked.' },
  credential_expired: { status: 401, message: 'The credential has expired.' },
  sign_in_failed: { status: 401, message: 'The email address or the password is wrong.' },
  totp_required: { status: 401, message: 'The password is right. Send a code of the second factor as well.' },

  // 403: known, but not allowed.
  credential_kind_not_allowed: { status: 403, message: 'This operation does not accept this kind of credential.' },
  draft_credential_not_allowed: { status: 403, message: 'A draft credential can only work on page drafts.' },
  organization_inactive: { status: 403, message: 'The organization is inactive.' },
  application_archived: { status: 403, message: 'The application of this credential is archived.' },
  user_inactive: { status: 403, message: 'The user of this credential is inactive.' },
  scope_missing: { status: 403, message: 'The credential lacks a scope that this operation requires.' },
  cross_site_request: { status: 403, message: 'The request was sent by a page of another site.' },
  password_wrong: { status: 403, message: 'The current password is wrong.' },
  permission_denied: { status: 403, message: 'The caller may not do this.' },
  initiator_inactive: {
    status: 403,
    message: 'Who began the operation may not go on: the credential was revoked or expired, or its user is inactive.',
  },

  // 404: absent, or not for this caller to know of.
  route_not_found: { status: 404, message: 'There is no such route.' },
  application_not_found: { status: 404, message: 'The application was not found.' },
  organization_not_found: { status: 404, message: 'The organization was not found.' },
  account_not_found: { status: 404, message: 'The account was not found.' },
  member_not_found: { status: 404, message: 'The team has no such member.' },
  session_not_found: { status: 404, message: 'The session was not found.' },
  user_not_found: { status: 404, message: 'The user was not found.' },
  invitation_not_found: {
    status: 404,
    message: 'The invitation was not found: there is none, it has expired, or it was accepted or revoked.',
  },
  credential_not_found: { status: 404, message: 'The credential was not found.' },
  object_not_found: { status: 404, message: 'The object was not found.' },
  field_not_found: { status: 404, message: 'The field was not found.' },
  model_part_not_found: { status: 404, message: 'The role, relationship or location template was not found.' },
  release_not_found: { status: 404, message: 'The release was not found.' },
  record_not_found: { status: 404, message: 'The record was not found.' },
  relationship_not_found: { status: 404, message: 'The relationship was not found.' },
  operation_not_found: { status: 404, message: 'The operation was not found.' },
  operation_file_not_found: {
    status: 404,
    message: 'The operation has no file to download: it writes none, has not succeeded, or the file has expired.',
  },
  webhook_subscription_not_found: { status: 404, message: 'The webhook subscription was not found.' },
  webhook_delivery_not_found: { status: 404, message: 'The webhook delivery was not found.' },
  correlation_not_found: { status: 404, message: 'No request with this correlation id was found.' },

  method_not_allowed: { status: 405, message: 'The route does not know this method. `Allow` names those it knows.' },

  request_timeout: { status: 408, message: 'The request did not arrive in time.' },

  // 409: the state stands against it.
  revision_conflict: {
    status: 409,
    message: 'It has changed since the revision that was expected. Read it again, then try again.',
  },
  totp_already_enabled: { status: 409, message: 'The second factor is on already. Turn it off first.' },
  totp_not_enrolled: { status: 409, message: 'There is no second factor to confirm or to turn off. Enroll first.' },
  credential_ended: { status: 409, message: 'The credential is revoked or has expired. Issue a new one.' },
  state_transition_invalid: {
    status: 409,
    message: 'The record cannot go from its state to the one given. `details` names the field and where it can go.',
  },
  field_locked: {
    status: 409,
    message: 'A field cannot change in the state that the record is in. `details` names it.',
  },
  merge_too_large: {
    status: 409,
    message: 'More than 1,000 records and relationships refer to the other contact. Move some of them first.',
  },
  merge_not_reversible: {
    status: 409,
    message: 'The two contacts were not merged, or not within the last 30 days.',
  },
  duplicate_value: { status: 409, message: 'Another record already has this value in a unique field.' },
  operation_ended: { status: 409, message: 'The operation is over, and cannot be cancelled any more.' },
  operation_given_up: {
    status: 409,
    message: 'The operation was begun again and again without coming further, and was given up.',
  },
  relationship_restricts: {
    status: 409,
    message: 'Related records stand against archiving the record. `details` names the relationship.',
  },
  record_archived: { status: 409, message: 'The record is archived. Restore it before changing it.' },
  email_taken: { status: 409, message: 'Somebody here already has this email address.' },
  last_owner: { status: 409, message: 'The last active owner cannot be removed, demoted or deactivated.' },
  invitation_pending: {
    status: 409,
    message: 'The address has a pending invitation. Resend that one, or revoke it first.',
  },
  invitation_closed: { status: 409, message: 'The invitation was accepted or revoked already.' },
  slug_taken: { status: 409, message: 'Another organization already has this slug.' },
  domain_taken: { status: 409, message: 'Another organization already has this domain.' },
  team_limit_reached: { status: 409, message: 'The team has as many members and pending invitations as it may have.' },
  location_limit_reached: { status: 409, message: 'The organization has as many locations as it may have.' },
  application_key_taken: { status: 409, message: 'Another application of the account has this key.' },
  model_change_refused: {
    status: 409,
    message:
      'Records, users or credentials stand against the change. `details` names each path, the reason and how many.',
  },
  model_unchanged: { status: 409, message: 'There is nothing to publish: the model is the one that is published.' },
  draft_outdated: {
    status: 409,
    message:
      'A newer release has changed what the draft changes as well. `details` names the parts: put each as the release has it and change it anew, or discard the draft.',
  },
  model_busy: {
    status: 409,
    message: 'Another release of the application is being published, or its tables are in use. Try again.',
    retryable: true,
  },
  webhook_subscription_limit_reached: {
    status: 409,
    message: 'The organization has as many webhook subscriptions as it may have.',
  },
  webhook_subscription_disabled: {
    status: 409,
    message: 'The webhook subscription is disabled. Enable it first.',
  },
  webhook_delivery_not_retryable: {
    status: 409,
    message: 'Only a delivery that failed can be tried again, while its subscription is there.',
  },
  idempotency_key_reused: { status: 409, message: 'This Idempotency-Key was used with another request.' },
  idempotency_in_progress: {
    status: 409,
    message: 'A request with this Idempotency-Key is still in progress.',
    retryable: true,
  },

  payload_too_large: { status: 413, message: 'The body is larger than the operation accepts.' },
  unsupported_media_type: { status: 415, message: 'The media type of the body is not supported by this operation.' },
  domain_not_verified: {
    status: 422,
    message: 'The domain could not be verified. `details` says what was looked for and what was found.',
  },
  webhook_destination_not_https: { status: 422, message: 'The destination must be an https URL.' },
  webhook_destination_blocked: {
    status: 422,
    message: 'The destination must be a public address on the internet, without a user name or password.',
  },
  webhook_event_unknown: {
    status: 422,
    message: 'There is no such event. The event types name those that there are.',
  },
  webhook_event_version_unknown: { status: 422, message: 'The event has no such version.' },
  webhook_scope_event_conflict: {
    status: 422,
    message: 'A subscription with the scope app takes lifecycle events only.',
  },
  model_invalid: { status: 422, message: 'The model is not valid. `details` names what to correct.' },
  rate_limited: { status: 429, message: 'Too many requests. Retry after the time given.', retryable: true },
  sign_in_throttled: {
    status: 429,
    message: 'Too many failed attempts for this account or from this address. Retry after the time given.',
    retryable: true,
  },
  operation_limit_reached: {
    status: 429,
    message:
      'The organization has as many operations at work, or as many files of operations, as it may have. Retry after the time given.',
    retryable: true,
  },
  mail_limit_reached: {
    status: 429,
    message:
      'As many messages as allowed went to this address, or out of this account, of late. Retry after the time given.',
    retryable: true,
  },

  request_headers_too_large: { status: 431, message: 'The headers of the request are too large.' },

  internal_error: {
    status: 500,
    message: 'An unexpected error occurred. Quote the correlation id when you report it.',
  },
  count_unavailable: {
    status: 503,
    message: 'The exact count could not be made in time. It is not zero: try again, or narrow the filter.',
    retryable: true,
  },
  query_too_expensive: {
    status: 503,
    message: 'The query took longer than allowed. Narrow it, sort by an indexed field, or try again.',
    retryable: true,
  },
  database_unavailable: { status: 503, message: 'The database cannot be reached right now.', retryable: true },
  dns_unavailable: { status: 503, message: 'The DNS gave no answer about the domain right now.', retryable: true },
  secrets_unavailable: { status: 503, message: 'A secret cannot be opened right now.', retryable: true },
  shutting_down: { status: 503, message: 'This process is shutting down. Send the request again.', retryable: true },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof table
export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = table

/** One thing to correct: which field or position, why (a code of the catalogue or a keyword), and in words. */
export interface ErrorDetail {
  readonly field: string
  readonly code: string
  readonly message: string
}

export interface FailureOptions {
  /** The field or position to correct; becomes the only detail. */
  readonly field?: string
  /** Words for that detail, or, without `field`, in place of the catalogue's message. Must be safe to show. */
  readonly message?: string
  readonly details?: readonly ErrorDetail[]
  /** Whole seconds, at least 1; only for retryable codes. */
  readonly retryAfterSeconds?: number
  readonly headers?: Readonly<Record<string, string>>
  /** For the log only. */
  readonly cause?: unknown
}

/** A failure with a catalogued code. Anything else that is thrown becomes `internal_error`. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: ErrorCode
  readonly details: readonly ErrorDetail[] | undefined
  readonly retryAfterSeconds: number | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, options: FailureOptions = {}) {
    const entry = errorTable[code]
    super(options.field === undefined && options.message !== undefined ? options.message : entry.message, {
      cause: options.cause,
    })
    this.code = code
    this.details =
      options.details ??
      (options.field === undefined
        ? undefined
        : [{ field: options.field, code, message: options.message ?? entry.message }])
    this.retryAfterSeconds = entry.retryable ? Math.max(1, Math.ceil(options.retryAfterSeconds ?? 1)) : undefined
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return errorTable[this.code].status
  }
}

/** Makes a failure with a catalogued code: `throw fail('record_not_found')`. */
export function fail(code: ErrorCode, options?: FailureOptions): Failure {
  return new Failure(code, options)
}

export interface ErrorBody {
  readonly error: string
  readonly code: ErrorCode
  readonly correlationId: string
  readonly details?: readonly ErrorDetail[]
}

/** Clients name fields too, and a name can be as long as a body. */
const fieldNameMax = 200

function shortened(detail: ErrorDetail): ErrorDetail {
  return detail.field.length <= fieldNameMax ? detail : { ...detail, field: `${detail.field.slice(0, fieldNameMax)}…` }
}

/** The wire form of specification 2.2; `details` only where there is something to correct. */
export function errorBody(failure: Failure, correlationId: string): ErrorBody {
  return {
    error: failure.message,
    code: failure.code,
    correlationId,
    ...(failure.details && { details: failure.details.map(shortened) }),
  }
}
