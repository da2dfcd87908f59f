// Client of the Commodity Prices Service, version 3, for Node 20 or newer and browsers.
import type { components, paths } from './schema.d.ts';

type Schemas = components['schemas'];
type Json<T extends { content: { 'application/json': object } }> = T['content']['application/json'];
type ChangesQuery = NonNullable<paths['/v3/changes']['get']['parameters']['query']>;
/** A market, by the last part of its address. */
export type Market = NonNullable<ChangesQuery['market']>[number];
type Post<M extends Market> = paths[`/v3/prices/${M}`]['post'];
type FormatOption = 'decimalsAsText' | 'columns' | 'layout' | 'warnings';
/** Filters and options as the service names them; `includeSeries` is true by default. */
export type PriceRequest<M extends Market> = Omit<Json<Post<M>['requestBody']>, 'options'> & {
  readonly options?: Omit<Schemas['MassPriceOptions'], FormatOption>;
};
/** Members that are integers; every other number of a record is a decimal. */
type Count = 'corrections' | 'observations' | 'observationsLeftOut' | 'order';
type Decimals<T, D> = [number] extends [T] ? D | (T & null) : T extends object ? Exact<T, D> : T;
type Exact<T, D> = { [Name in keyof T]: Name extends Count ? T[Name] : Decimals<T[Name], D> };
type Item<M extends Market> = Json<Post<M>['responses'][200]>['data'][number];
/** A price with the dimensions of its market. D is `string` with `decimals: 'text'`. */
export type PriceRecord<M extends Market, D = number> = Exact<Item<M>, D>;
/** A response. `revision` is the revision of the data; `options.revision` reads it again. */
export interface Prices<M extends Market, D = number> {
  readonly data: readonly PriceRecord<M, D>[];
  readonly metadata: Schemas['Metadata'];
  readonly revision: string;
}
/** A page of the change feed. `nextSeq` is `after` of the next page. */
export interface Changes {
  readonly data: readonly Schemas['Change'][];
  readonly nextSeq: string;
  readonly revision: string;
}
/** `timeoutMs` (60,000) bounds all attempts of a call. A cancelled call rejects with its reason. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}
type Form = 'number' | 'text';
/** `url` and `key` default to COMMODITY_PRICES_URL and COMMODITY_PRICES_KEY of the environment. */
export interface ClientOptions<F extends Form> extends CallOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  /** `text`: prices and summaries have decimals as texts with every digit; changes never. */
  readonly decimals?: F;
  /** False drops x-min-revision, by which no answer is older than one that this client has. */
  readonly monotonic?: boolean;
  /** Receives each warning, such as a filter value that matches nothing; by default the console. */
  readonly onWarning?: (warning: Schemas['Warning'], market: Market) => void;
}
type Arguments<M extends Market> = [market: M, request?: PriceRequest<M>, call?: CallOptions];
/** The calls of a client. Each rejects with PricesError. */
export interface Client<D = number> {
  prices<M extends Market>(...call: Arguments<M>): Promise<Prices<M, D>>;
  /** The same in pages of `options.limit` records, 100 by default, all of one revision. */
  pages<M extends Market>(...call: Arguments<M>): AsyncGenerator<Prices<M, D>, void>;
  changes(request?: ChangesQuery, call?: CallOptions): Promise<Changes>;
}
/** A failed call. Members that were not sent are null. */
export class PricesError extends Error {
  override readonly name = 'PricesError';
  readonly status: number | null = null;
  readonly code: Schemas['Problem']['code'] | null = null;
  readonly errors: readonly Schemas['Violation'][] = [];
  readonly requestId: string | null = null;
  readonly retryAfterMs: number | null = null;
}
/** One row for each price and date; `columns` has the names, also without rows. */
export function rowsOf<D>({ data }: Pick<Prices<Market, D>, 'data'>) {
  const rows = data.flatMap(({ code, name, currency, unitOfMeasure, series }) =>
    series.map(({ date, low, mid, high, corrections }) => {
      const money = { currency: currency?.iso ?? null, unit: unitOfMeasure.symbol };
      return { code, name, date, low, mid, high, ...money, corrections };
    }),
  );
  const columns = 'code name date low mid high currency unit corrections'.split(' ');
  return Object.assign(rows, { columns });
}
/** Milliseconds of a Retry-After; null if missing or malformed. */
function retryAfterOf(text: string | null): number | null {
  if (/^\d{1,9}$/.test(text ?? '')) return Number(text) * 1_000;
  const ms = Date.parse(text?.endsWith(' GMT') ? text : '') - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
const holdsKey = (url: string) => /cps_[a-z]+_/i.test(String(new URLSearchParams(url)));
type Loose = ReturnType<typeof JSON.parse>;
const isText = (value: unknown) => typeof value === 'string';
/** True for records, warnings and errors: each has a code. */
const isList = (list: Loose) => Array.isArray(list) && list.every((each) => isText(each?.code));
const numberOf = (text = '') => Number(/^[0-9a-z]+\.(\d+)$/.exec(text)?.[1] ?? -1);
const ADDRESS = /^https?:\/\/[^/@?#\s]+(\/[^@?#\s]*)?$/i;
/** A pattern that finds a key in the encodings of an echo, also cut after 12 characters. */
const secretOf = (key: string) => {
  const forms = [...key].map((each, place) => {
    const code = each.charCodeAt(0).toString(16);
    return `(\\\\{0,4}\\x${code}|%(25){0,4}${code}|\\\\{1,4}u00${code})${place < 12 ? '' : '?'}`;
  });
  return new RegExp(forms.join(''), 'gi');
};
const fault = (text: string, members = {}) => Object.assign(new PricesError(text), members);
async function attempt(url: string, init: RequestInit, signal: AbortSignal) {
  // A server may echo the headers of the request.
  const secret = secretOf(new Headers(init.headers).get('x-api-key') ?? '');
  const hide = (text: string) => text.replace(secret, '[secret]');
  const { ok, status, headers, body } = await fetch(url, { ...init, signal }).catch((error) => {
    const why = error.cause?.code ?? (error.cause ?? error).message;
    throw fault(`${url} cannot be reached: ${hide(why)}`);
  });
  const kind = headers.get('content-type')?.split(';')[0]?.trim() ?? 'no content';
  const isJson = /^application\/(problem\+)?json$/i.test(kind);
  const [reader, decoder] = [body?.getReader(), new TextDecoder()];
  const none = { $metadata: { nextSeq: headers.get('x-next-seq') }, data: [] };
  let [text, content, part]: [string, Loose, Loose] = ['', null, null];
  try {
    for (part = await reader?.read(); part?.value; part = await reader?.read()) {
      text += decoder.decode(part.value, { stream: true });
      if (!isJson && text.length > 200) await reader?.cancel();
    }
    content = status === 204 ? none : isJson && JSON.parse(ok ? text : hide(text));
    const { $metadata: meta, data } = content;
    const mark = init.body ? isList(meta.warnings) && meta.revision : meta.nextSeq;
    const isPage = isText(mark) && isList(data) && (meta.count ?? data.length) === data.length;
    const rows = init.body ? rowsOf(content) : [];
    if (ok && isPage && !rows.some((row) => Object.values(row).includes(undefined))) {
      if (init.body) meta.warnings = JSON.parse(hide(JSON.stringify(meta.warnings)));
      return { content, fields: headers };
    }
  } catch {
    if (!part?.done || (ok && !text))
      throw fault(`${url} sent a part of its answer only: ${hide(text).slice(0, 200)}`);
  }
  const [to, retryAfterMs] = [headers.get('location'), retryAfterOf(headers.get('retry-after'))];
  const moved = status < 400 && to && `a redirect to ${to.split(/[?#]/)[0]}; set url to its host`;
  const other = { detail: moved || `${kind}, no answer of version 3: ${hide(text).slice(0, 200)}` };
  const isProblem = isText(content?.code) && isText(content.detail);
  const { detail, code = null, errors: list, requestId = null } = isProblem ? content : other;
  const errors = isList(list) ? list : [];
  const places = errors.map((each: Loose) => `\n${each.pointer}: ${each.detail}`).join('');
  const hint = status === 404 ? ' (this client is for version 3)' : '';
  const members = { status, code, errors, requestId, retryAfterMs };
  throw fault(`${url} answered ${status}: ${hide(detail)}${places}${hint}`, members);
}
/** Sends a request with retries: every call only reads. */
async function send(url: string, init: RequestInit, { signal, timeoutMs = 60_000 }: CallOptions) {
  const [control, endsAt] = [new AbortController(), performance.now() + timeoutMs];
  const stop = () => control.abort();
  const timer = setTimeout(stop, Math.min(timeoutMs, 2e9));
  signal?.addEventListener('abort', stop);
  try {
    for (let retries = 0; ; retries += 1) {
      signal?.throwIfAborted();
      const got = await attempt(url, init, control.signal).catch((error: PricesError) => error);
      if (!(got instanceof Error)) return got;
      signal?.throwIfAborted();
      if (control.signal.aborted) throw fault(`${url} did not answer within ${timeoutMs} ms`);
      const waitMs = got.retryAfterMs ?? 500 * 2 ** retries;
      const isPassing = [null, 304, 429, 503].includes(got.status);
      if (!isPassing || retries === 3 || performance.now() + waitMs >= endsAt) throw got;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        control.signal.onabort = () => resolve(clearTimeout(timer));
      });
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}
/** @throws PricesError for a missing key, and for a malformed key or address */
export function createClient<F extends Form = 'number'>(options: ClientOptions<F> = {}) {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  const url = options.url ?? process?.env?.['COMMODITY_PRICES_URL'] ?? 'http://127.0.0.1:3000';
  const key = options.key ?? process?.env?.['COMMODITY_PRICES_KEY'] ?? '';
  if (!ADDRESS.test(url) || holdsKey(url)) throw fault('url must be http(s)://host without a key');
  if (!key) throw fault('No API key; set COMMODITY_PRICES_KEY, or give key');
  if (!/^[\x21-\x7e]+$/.test(key)) throw fault('key has illegal characters');
  const base = url.replace(/\/+$/, '').replace(/\/v3(\/prices)?$/, '');
  const headers: Record<string, string> = { 'content-type': 'application/json', 'x-api-key': key };
  const { onWarning = (each, market) => console.warn(market, each.code, each.detail) } = options;
  async function ask(path: string, call: CallOptions = {}, body: string | null = null) {
    const { signal = options.signal, timeoutMs = options.timeoutMs } = call;
    if (holdsKey(path)) throw fault('An address must not hold a key');
    // A redirect would take the key elsewhere.
    const init = { method: body ? 'POST' : 'GET', body, headers, redirect: 'manual' } as const;
    const { content, fields } = await send(`${base}/v3/${path}`, init, { signal, timeoutMs });
    const [min, revision] = ['x-min-revision', fields.get('x-data-revision') ?? ''];
    const known = fields.has(`${min}-unknown`) ? -1 : numberOf(headers[min]); // Another history
    if (options.monotonic !== false && numberOf(revision) > known) headers[min] = revision;
    return { data: content.data, metadata: content.$metadata, revision };
  }
  async function prices(market: Market, request: Loose = {}, call?: CallOptions): Promise<Loose> {
    const text = options.decimals === 'text' && { decimalsAsText: true };
    const body = { ...request, options: { includeSeries: true, ...request.options, ...text } };
    const page = await ask(`prices/${encodeURIComponent(market)}`, call, JSON.stringify(body));
    // Each page has the warnings of the whole request.
    for (const each of body.options.cursor ? [] : page.metadata.warnings) onWarning(each, market);
    return { ...page, revision: page.metadata.revision };
  }
  async function* pages(market: Market, request: Loose = {}, call?: CallOptions) {
    for (let own = { limit: 100, ...request.options }; own.cursor !== null; ) {
      const page = await prices(market, { ...request, options: own }, call);
      yield page;
      own = { ...own, cursor: page.metadata.nextCursor ?? null };
    }
  }
  async function changes(request = {}, call?: CallOptions) {
    const query = Object.entries(request).flatMap(([name, value = []]) =>
      [value].flat().map((each): [string, string] => [name, String(each)]),
    );
    const { metadata, ...page } = await ask(`changes?${new URLSearchParams(query)}`, call);
    return { ...page, nextSeq: metadata.nextSeq };
  }
  return { prices, pages, changes } as Client<F extends 'text' ? string : number>;
}
