import { UsageError } from '../../std/base-errors.ts';
import { bytesOf, fetchWithRetries, retryAfterMs } from '../../std/http.ts';
import { VERSION } from '../../std/program.ts';
import { masked, maskedEncoded, maskerOf } from '../../std/secrets.ts';

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

/** The service, called with one credential. */
export interface PriceService {
  readonly url: string;
  get(
    path: string,
    query: Readonly<Record<string, string | readonly string[] | undefined>>,
    signal: AbortSignal,
  ): ServiceResponse;
  post(path: string, body: object, signal: AbortSignal): ServiceResponse;
}

/** A response that is a JSON object. @throws CallError */
type ServiceResponse = Promise<JsonMembers>;

interface ServiceAccess {
  /** Address of the service. */
  readonly url: string | undefined;
  readonly key?: string | undefined;
  /** A bearer token, or a function that returns one and is called for each request. */
  readonly token?: string | (() => string) | undefined;
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

/** A credential, and the header that sends it. */
interface SentCredential {
  readonly secret: string;
  readonly header: Readonly<Record<string, string>>;
}

/** @throws UsageError for a missing credential, two of them, or one with illegal characters */
function credentialsOf({ key, token }: ServiceAccess): () => SentCredential {
  if (key && token) {
    throw new UsageError(
      'COMMODITY_PRICES_TOKEN: set only one of COMMODITY_PRICES_KEY and COMMODITY_PRICES_TOKEN',
    );
  }
  const next = (): SentCredential => {
    const secret = (typeof token === 'function' ? token() : token) || key || '';
    if (!/^[\x21-\x7e]+$/.test(secret)) {
      const name = token ? 'COMMODITY_PRICES_TOKEN' : 'COMMODITY_PRICES_KEY';
      throw new UsageError(`${name}: holds a space, a line end or another character`);
    }
    const header = token ? { authorization: `Bearer ${secret}` } : { 'x-api-key': secret };
    return { secret, header };
  };
  if (!key && !token) {
    throw new UsageError(
      'there is no API key: set the environment variable COMMODITY_PRICES_KEY, or ' +
        'COMMODITY_PRICES_TOKEN to a bearer token',
    );
  }
  next();
  return next;
}

/** JSON reviver: keeps exact digits of prices as text and escapes invisible characters. */
function asWritten(key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value === 'number' && PRICES.includes(key)) return source;
  if (typeof value !== 'string') return value;
  return value.replace(INVISIBLE, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);
}

/** Removes the credential of the request from a text of a response, which may echo it. */
type Hide = (text: string) => string;

/** Parses a JSON object without the credential; null for invalid JSON and other values. */
function membersOf(bytes: Buffer | null, hide: Hide): JsonMembers | null {
  if (bytes === null) return null;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const value = JSON.parse(hide(text), asWritten as Parameters<typeof JSON.parse>[1]);
    return typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** The reason of a failed connection; `fetch` has it in `cause`. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { readonly cause?: Error & { code?: string } };
  return cause?.code ?? cause?.message ?? message;
}

/**
 * The members of a response, or its error.
 * @param url the address without its query, which has texts of the call
 * @throws CallError
 */
function contentOf(answer: Response, url: string, members: JsonMembers | null): JsonMembers {
  const { status } = answer;
  const isService = members !== null && (status !== 200 || Array.isArray(members['data']));
  // The list of markets has no revision.
  const hasMetadata = members?.['$metadata'] instanceof Object || url.endsWith('/v3/prices');
  if (!isService || (status === 200 && !hasMetadata)) {
    throw new CallError(
      `${url} answered ${status} without the JSON of a Commodity Prices Service of version 3; ` +
        'set COMMODITY_PRICES_URL to the address of the service',
      status,
    );
  }
  if (status === 200) return members;
  const { detail, code, errors, requestId } = members;
  const where = status === 404 ? ` (${url}; this command is for version 3 of the service)` : '';
  const afterMs = retryAfterMs(answer);
  const when = afterMs > 0 ? `; repeat the call after ${Math.ceil(afterMs / 1_000)} seconds` : '';
  const message = `${detail ?? 'The service refused'}${where}${when}`;
  throw new CallError(message, status, { code, errors, requestId });
}

/** The query of an address; lists repeat their parameter. */
function queryText(query: Parameters<PriceService['get']>[1]): string {
  const given = Object.entries(query).flatMap(([name, value = []]) =>
    [value].flat().map((each): [string, string] => [name, each]),
  );
  return new URLSearchParams(given).toString();
}

/**
 * Opens the service for one credential, without a request.
 * @throws UsageError for a missing credential, one in the address, or an invalid address
 */
export function openService(access: ServiceAccess): PriceService {
  const { url: address, timeoutMs } = access;
  const credential = credentialsOf(access);
  const root = rootOf(address || 'http://127.0.0.1:3000');
  const headers = {
    accept: 'application/json, application/problem+json',
    'accept-encoding': 'identity',
    'user-agent': `commodity-prices-mcp/${VERSION}`,
  };

  /** @throws CallError for a token file that became unusable */
  function sentCredential(): SentCredential {
    try {
      return credential();
    } catch (error) {
      throw new CallError((error as Error).message);
    }
  }

  async function call(
    path: string,
    body: object | null,
    cancelled: AbortSignal,
  ): Promise<JsonMembers> {
    const { secret, header } = sentCredential();
    const hide = maskerOf(secret);
    const dueMs = performance.now() + timeoutMs;
    const timeout = AbortSignal.timeout(timeoutMs);
    const request = {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { ...headers, ...header, ...(body && { 'content-type': 'application/json' }) },
      signal: AbortSignal.any([cancelled, timeout]),
    };
    const url = `${root}${path}`;
    try {
      const answer = await fetchWithRetries(url, request, dueMs);
      const members = membersOf(await bytesOf(answer, BODY_BYTES_MAX), hide);
      return contentOf(answer, url.replace(/\?.*/, ''), members);
    } catch (error) {
      if (error instanceof CallError || cancelled.aborted) throw error;
      const seconds = timeoutMs / 1_000;
      throw new CallError(
        timeout.aborted
          ? `${root} did not answer within ${seconds} seconds`
          : `The connection to ${root} failed: ${hide(reasonOf(error))}`,
      );
    }
  }

  return {
    url: root,
    get(path, query, signal) {
      const text = queryText(query);
      return call(text === '' ? path : `${path}?${text}`, null, signal);
    },
    post: (path, body, signal) => call(path, body, signal),
  };
}
