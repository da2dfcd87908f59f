import { StacklessError } from './std/base-errors.ts';
import { masked } from './std/secrets.ts';

/**
 * Every refusal of the service: code → status and title. Append-only: a released code keeps its
 * meaning. The OpenAPI document and the page /docs/problems are generated from this table.
 */
export const PROBLEMS = {
  malformed_request: [400, 'The request is malformed'],
  malformed_json: [400, 'The body is not valid JSON'],
  validation_failed: [400, 'The request breaks a rule'],
  unknown_revision: [400, 'The revision is not known; start again without it'],
  invalid_cursor: [400, 'The cursor is not valid; start again without it'],
  unconvertible_records: [400, 'Prices cannot be converted as asked'],
  ambiguous_credentials: [400, 'More than one credential was sent'],
  missing_credentials: [401, 'A credential is needed'],
  invalid_api_key: [401, 'The API key is not valid'],
  api_key_expired: [401, 'The API key has expired'],
  api_key_revoked: [401, 'The API key was revoked'],
  invalid_token: [401, 'The token is not valid'],
  token_expired: [401, 'The token has expired'],
  insufficient_scope: [403, 'The credential does not open this market'],
  not_found: [404, 'There is nothing at this address'],
  method_not_allowed: [405, 'This address does not take that method'],
  not_acceptable: [406, 'No format that the client accepts is offered'],
  request_timeout: [408, 'The request took too long to arrive'],
  body_too_large: [413, 'The body is too large'],
  uri_too_long: [414, 'The address is too long'],
  unsupported_media_type: [415, 'The body is not application/json'],
  rate_limited: [429, 'Too many requests in a short time'],
  too_many_concurrent_requests: [429, 'Too many requests at the same time'],
  headers_too_large: [431, 'The headers are too large'],
  internal_error: [500, 'The service failed'],
  overloaded: [503, 'The service is overloaded'],
  database_unavailable: [503, 'The database cannot be reached'],
  schema_outdated: [503, 'The database schema is not the one this version needs'],
  auth_unavailable: [503, 'Credentials cannot be checked at the moment'],
  shutting_down: [503, 'The service is shutting down'],
  revision_not_here: [503, 'The server that answers does not have this revision yet'],
  query_timeout: [504, 'The database took too long'],
} as const satisfies Record<string, readonly [number, string]>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Codes of a single violation of a request. */
export const VIOLATIONS = {
  unknown_field: 'A member that the request does not have',
  wrong_type: 'A value of another type',
  invalid_format: 'A text that is empty or not in the format asked for',
  invalid_characters: 'A text with control characters or broken Unicode',
  too_few_items: 'A list with too few items, or a parameter that is needed and missing',
  too_many_items: 'A list with too many items, or a parameter that was given twice',
  too_long: 'A text that is too long',
  out_of_range: 'A value outside the range allowed',
  date_order: 'dateFrom lies after dateTo',
  codes_exclusive: 'codes was combined with another filter',
  unsupported_filter: 'A filter that belongs to other markets',
  unknown_currency: 'A currency that is not known',
  unknown_unit: 'A unit of measure that is not known',
  unknown_revision: 'A revision or a feed position that this database does not have',
  invalid_cursor: 'A cursor of another request, or of data that this database does not have',
  unmatched_value: 'With options.strict, a value that matches nothing in this market',
  unknown_code: 'A code of no price in the markets that the credential can read',
  unconvertible: 'An input that cannot be converted as asked',
  vat_not_included: 'VAT was to be excluded from a price that is not known to include it',
  sessions_missing: 'Due sessions of a period are missing, and the request does not say what then',
  reference_unknown: 'A price, or a payable whose reference is not known',
  invalid_formula: 'A formula that cannot be parsed, or an input that it does not name',
  unit_mismatch: 'Numbers of different units were added or compared, or another unit was wanted',
  division_by_zero: 'A formula divides by 0',
} as const;

export type ViolationCode = keyof typeof VIOLATIONS;

/** Codes of warnings in `$metadata.warnings`. */
export const WARNINGS = {
  unmatched_value: 'A value of a filter that matches nothing in this market',
  not_yet_existing: 'A price that did not exist yet at the requested asOf or revision',
  rates_missing: 'Rates of a currency are missing for some of the requested points',
  sample_rates: 'Numbers were converted by the invented rates of the demonstration',
  unconvertible_omitted: 'Records that cannot be converted as asked were left out',
  min_revision_unknown: 'x-min-revision names a revision of another history of the data',
  mean_at_one_day_rate: 'Means of a month or year were converted at the rate of one day',
  vat_unknown: 'VAT was not excluded from prices that are not known to include it',
  vat_rates_missing: 'Rates of value added tax are missing',
  vat_included: 'Prices include value added tax, and so do the numbers they are converted to',
} as const;

export type WarningCode = keyof typeof WARNINGS;

/** One broken rule: a JSON pointer into the request, a stable code, and what to do instead. */
export interface Violation {
  readonly pointer: string;
  readonly code: ViolationCode;
  readonly detail: string;
}

interface ProblemOptions {
  readonly errors?: readonly Violation[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** Seconds of a `Retry-After`, random so that clients do not retry at the same time. */
export const retryAfter = (): string => String(1 + Math.floor(Math.random() * 5));

/** A refusal as an exception. The client gets `message` as `detail`. */
export class Problem extends StacklessError {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly errors: readonly Violation[] | undefined;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.errors = options.errors;
    this.#headers = options.headers ?? {};
  }

  get statusCode(): number {
    return PROBLEMS[this.code][0];
  }

  /** The headers of one answer; each 503 has a `Retry-After` of its own. */
  get headers(): Readonly<Record<string, string>> {
    return this.statusCode === 503
      ? { 'retry-after': retryAfter(), ...this.#headers }
      : this.#headers;
  }
}

/** Maximum number of violations in a response; `detail` says if there are more. */
export const VIOLATIONS_MAX = 100;

/** The problem of a request with violations, with the first `VIOLATIONS_MAX` of them. */
export function brokenRules(violations: readonly Violation[]): Problem {
  const { length } = violations;
  const sentence =
    length === 1
      ? 'One rule is broken; errors names the place'
      : length > VIOLATIONS_MAX
        ? `More than ${VIOLATIONS_MAX} rules are broken; errors names the first ${VIOLATIONS_MAX}`
        : `${length} rules are broken; errors names each place`;
  return new Problem('validation_failed', sentence, {
    errors: violations.slice(0, VIOLATIONS_MAX),
  });
}

/** Codes of a violation that are also the code of the problem. */
type StartAgainCode = ProblemCode & ViolationCode;

/**
 * Rejects a revision, a feed position or a cursor. The client must discard it and start again, so
 * the problem has a code of its own. The request breaks no other rule.
 */
export const startAgain = (code: StartAgainCode, pointer: string, detail: string): Problem =>
  new Problem(code, detail, { errors: [{ pointer, code, detail }] });

const OR = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** Joins alternatives for a sentence: `GET, HEAD or POST`. */
export const eitherOf = (words: Iterable<string>): string => OR.format(words);

const AND = new Intl.ListFormat('en-GB', { type: 'conjunction' });

/** Joins all of some words for a sentence: `GET, HEAD and POST`. */
export const allOf = (words: Iterable<string>): string => AND.format(words);

/** Sanitises a sent text for messages: 64 characters, no control characters, no secrets. */
export const quoted = (text: string): string => {
  const printable = masked(text).replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd');
  return printable.length > 64 ? `${printable.slice(0, 63).toWellFormed()}…` : printable;
};
