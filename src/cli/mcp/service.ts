import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../../std/base-errors.ts';
import { VERSION } from '../../std/program.ts';
import { masked, maskedEncoded, maskerOf } from '../../std/secrets.ts';

/** Maximum number of retries of a call after 429 or 503. */
const RETRIES = 3;

/** First wait without a `Retry-After`; each further wait is twice as long. */
const WAIT_MS = 500;

/** Maximum number of characters of an unexpected body in its error. */
const SHOWN = 200;

/** Maximum bytes of a body. A response of 200 points has less than a tenth. */
const BODY_BYTES_MAX = 8 * 2 ** 20;

/** Members that contain prices. They stay text, so no digit is lost. */
const PRICES = ['low', 'mid', 'high'];

/** Characters that change or hide the text around them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A failed call. Members that the service did not send are absent. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly status: number | undefined;
  /** Members of the problem document: code, errors, requestId. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(message: string, status?: number, problem: Readonly<Record<string, unknown>> = {}) {
    super(masked(message));
    this.status = status;
    this.problem = problem;
  }
}

/** A parsed JSON object. */
export type JsonMembers = Readonly<Record<string, unknown>>;

/** The service, called with one key. */
export interface PriceService {
  readonly url: string;
  get(
    path: string,
    query: Readonly<Record<string, string | undefined>>,
    needed: NeededMembers,
    signal: AbortSignal,
  ): ServiceResponse;
  post(path: string, body: object, needed: NeededMembers, signal: AbortSignal): ServiceResponse;
}

/** A response that is a JSON object. @throws CallError */
type ServiceResponse = Promise<JsonMembers>;

interface ServiceAccess {
  /** Address of the service. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** Timeout of a call with all of its attempts, in milliseconds. */
  readonly timeoutMs: number;
}

/** The address without `/v3`. @throws UsageError */
function rootOf(text: string): string {
  const url = URL.parse(text);
  const name = 'COMMODITY_PRICES_URL';
  if (maskedEncoded(text) !== text || url?.username || url?.password || url?.search || url?.hash) {
    throw new UsageError(
      `${name}: the address holds a credential or a query; set COMMODITY_PRICES_KEY to the API key`,
    );
  }
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${name}: must be an address such as https://prices.example.com`);
  }
  return url.href.replace(/\/+$/, '').replace(/\/v3(\/prices)?$/, '');
}

/** @throws UsageError for a missing key or one with illegal header characters */
function checkedKey(key: string | undefined): string {
  if (!key) {
    throw new UsageError('there is no API key: set the environment variable COMMODITY_PRICES_KEY');
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new UsageError('COMMODITY_PRICES_KEY: holds a space, a line end or another character');
  }
  return key;
}

/** Milliseconds of a `Retry-After`, which may be a date; null if it is missing or malformed. */
function retryAfterMs(text: string | null): number | null {
  if (text === null) return null;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text) * 1_000;
  const date = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now());
}

const beginningOf = (bytes: Buffer): string =>
  JSON.stringify(visible(masked(bytes.subarray(0, 4 * SHOWN).toString()).slice(0, SHOWN)));

/** Escapes the invisible characters of a text. */
const visible = (text: string): string =>
  text.replace(INVISIBLE, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);

/** JSON reviver: keeps exact digits of prices as text and escapes invisible characters. */
function asWritten(key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value === 'string') return visible(value);
  return typeof value === 'number' && PRICES.includes(key) ? source : value;
}

/** Removes the key of the request from a text of a response, which may echo it. */
type Hide = (text: string) => string;

/** Parses a JSON object without the key; null for invalid JSON and other values. */
function membersOf(bytes: Buffer, hide: Hide): JsonMembers | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const value = JSON.parse(hide(text), asWritten as Parameters<typeof JSON.parse>[1]);
    return typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** The cause of a connection error, as text. */
function causeOf(error: unknown): string {
  const { cause, message } = error as Error & { readonly cause?: Error & { code?: string } };
  return cause?.code ?? cause?.message ?? message;
}

/** Reads a body. @throws CallError if it is incomplete or too long */
async function bodyOf(answer: Response, url: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of answer.body ?? []) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > BODY_BYTES_MAX) break;
    }
  } catch (error) {
    if ((error as Error).name === 'AbortError' || (error as Error).name === 'TimeoutError') {
      throw error;
    }
    const said = beginningOf(Buffer.concat(chunks));
    throw new CallError(`${url} sent only a part of its answer: ${said}`, answer.status);
  }
  const bytes = Buffer.concat(chunks);
  if (length <= BODY_BYTES_MAX) return bytes;
  throw new CallError(
    `${url} sent more than ${BODY_BYTES_MAX} bytes: ${beginningOf(bytes)}`,
    answer.status,
  );
}

const KINDS = {
  text: (value: unknown) => typeof value === 'string',
  object: (value: unknown) => value instanceof Object,
  list: (value: unknown) => Array.isArray(value),
};

/** Members that a tool reads in each record of `data`. */
type NeededMembers = Readonly<Record<string, keyof typeof KINDS>>;

/** The name of a required member that a response lacks. */
function missingIn(
  { data, $metadata }: JsonMembers,
  url: string,
  needed: NeededMembers,
): string | null {
  if (!Array.isArray(data)) return 'data';
  for (const [name, kind] of Object.entries(needed)) {
    if (!data.every((record) => KINDS[kind](record?.[name]))) return `${name} in each record`;
  }
  // The list of markets has no revision.
  const isComplete = url.endsWith('/v3/prices') || $metadata instanceof Object;
  return isComplete ? null : '$metadata';
}

/** The content of a response, or its error. @throws CallError */
async function contentOf(
  answer: Response,
  url: string,
  needed: NeededMembers,
  hide: Hide,
): Promise<JsonMembers | CallError> {
  const { status, headers } = answer;
  const bytes = await bodyOf(answer, url);
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? 'no type';
  const target = headers.get('location')?.split(/[?#]/)[0];
  if (status >= 300 && status < 400 && target) {
    const message = `${url} answered ${status}, a redirect: set COMMODITY_PRICES_URL to the final`;
    return new CallError(`${message} address, ${target}`, status);
  }
  const wanted = status === 200 ? 'application/json' : 'application/problem+json';
  const members = type === wanted ? membersOf(bytes, hide) : null;
  if (members === null) {
    const what =
      type === wanted ? `${type} that is no whole JSON object` : `${type} instead of ${wanted}`;
    return new CallError(`${url} answered ${status} with ${what}: ${beginningOf(bytes)}`, status);
  }
  if (status === 200) {
    const missing = missingIn(members, url, needed);
    if (missing === null) return members;
    return new CallError(
      `${url} is no Commodity Prices Service of version 3; its answer has no ${missing}: ` +
        beginningOf(bytes),
      status,
    );
  }
  const { detail, code, errors, requestId } = members;
  const where = status === 404 ? ` (${url}; this command is for version 3 of the service)` : '';
  return new CallError(`${detail ?? 'The service refused'}${where}`, status, {
    code,
    errors,
    requestId,
  });
}

/** One request, and its content or error. @throws CallError if the connection fails */
async function attempt(
  root: string,
  path: string,
  request: RequestInit,
  needed: NeededMembers,
  hide: Hide,
) {
  const url = `${root}${path}`;
  let answer: Response;
  try {
    answer = await fetch(url, request);
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new CallError(`The connection to ${root} failed: ${causeOf(error)}`);
  }
  return { answer, content: await contentOf(answer, url, needed, hide) };
}

/**
 * Opens the service for one key, without a request.
 * @throws UsageError for a missing key, a key in the address, or an invalid address
 */
export function openService({ url: address, key: given, timeoutMs }: ServiceAccess): PriceService {
  const key = checkedKey(given);
  const hide = maskerOf(key);
  const root = rootOf(address || 'http://127.0.0.1:3000');
  const headers = {
    accept: 'application/json, application/problem+json',
    'accept-encoding': 'identity',
    'user-agent': `commodity-prices-mcp/${VERSION}`,
    'x-api-key': key,
  };

  async function call(
    path: string,
    more: RequestInit,
    needed: NeededMembers,
    cancelled: AbortSignal,
  ): ServiceResponse {
    const dueMs = performance.now() + timeoutMs;
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([cancelled, timeout]);
    // A redirect would carry the key to another address.
    const request: RequestInit = { redirect: 'manual', headers, ...more, signal };
    try {
      for (let retries = 0; ; retries += 1) {
        const { answer, content } = await attempt(root, path, request, needed, hide);
        if (!(content instanceof CallError)) return content;
        const isPassing = answer.status === 429 || answer.status === 503;
        if (!isPassing || retries === RETRIES) throw content;
        const waitMs = retryAfterMs(answer.headers.get('retry-after')) ?? WAIT_MS * 2 ** retries;
        if (performance.now() + waitMs >= dueMs) {
          const seconds = Math.ceil(waitMs / 1_000);
          const message = `${content.message}; repeat the call after ${seconds} seconds`;
          throw new CallError(message, content.status, content.problem);
        }
        await pause(waitMs, undefined, { signal });
      }
    } catch (error) {
      if (error instanceof CallError) {
        throw new CallError(hide(error.message), error.status, error.problem);
      }
      if (!timeout.aborted || cancelled.aborted) throw error;
      throw new CallError(`${root} did not answer within ${timeoutMs / 1_000} seconds`);
    }
  }

  return {
    url: root,
    get(path, query, needed, signal) {
      const given = Object.entries(query).filter((each) => each[1] !== undefined);
      const text = new URLSearchParams(given as [string, string][]).toString();
      return call(text === '' ? path : `${path}?${text}`, {}, needed, signal);
    },
    post(path, body, needed, signal) {
      const type = { ...headers, 'content-type': 'application/json' };
      const request = { method: 'POST', headers: type, body: JSON.stringify(body) };
      return call(path, request, needed, signal);
    },
  };
}
