// Client of the Commodity Prices Service, version 3, for Node 20 or newer and browsers.
import type { components, paths } from './schema.d.ts';

type Schemas = components['schemas'];
type Json<T extends { content: { 'application/json': object } }> = T['content']['application/json'];
type QueryPath = '/v3/changes' | '/v3/search' | '/v3/reference/rates' | '/v3/calendar';
type Query<Path extends QueryPath> = NonNullable<paths[Path]['get']['parameters']['query']>;
type ChangesQuery = Query<'/v3/changes'>;
/** A market, by the last part of its address. */
export type Market = NonNullable<ChangesQuery['market']>[number];
type Post<M extends Market> = paths[`/v3/prices/${M}`]['post'];
type FormatOption = 'decimalsAsText' | 'columns' | 'layout' | 'warnings' | 'csvDialect';
/** Filters and options as the service names them; `includeSeries` is true by default. */
export type PriceRequest<M extends Market> = Omit<Json<Post<M>['requestBody']>, 'options'> & {
  readonly options?: Omit<Schemas['MassPriceOptions'], FormatOption>;
};
/** A request of a file: all options that its format has. */
export type FileRequest<M extends Market> = Json<Post<M>['requestBody']>;
/** Members that are integers; every other number of a record is a decimal. */
type Count = 'corrections' | 'days' | 'observations' | 'observationsLeftOut' | 'order';
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
type Listing<T extends { $metadata: object; data: object }> = {
  readonly data: T['data'];
  readonly metadata: T['$metadata'];
  readonly revision: string;
};
type Got<Path extends `/v3/prices/${Market}/filters`> = Json<paths[Path]['get']['responses'][200]>;
/** Formats of files, by their media types. `rows` is JSON with an object for each row. */
const MEDIA = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
  rows: 'application/json;profile=rows',
  parquet: 'application/vnd.apache.parquet',
  arrow: 'application/vnd.apache.arrow.stream',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
} as const;
export type FileFormat = keyof typeof MEDIA;
/** Bytes, read once within `timeoutMs` of the call: PricesError if the connection breaks. */
export interface PriceFile {
  readonly body: ReadableStream<Uint8Array>;
  readonly revision: string;
  /** `options.cursor` of the next page, with `options.limit`. */
  readonly nextCursor: string | null;
  bytes(): Promise<Uint8Array>;
}
/** A page of the change feed. `nextSeq` is `after` of the next page, read while `hasMore`. */
export interface Changes {
  readonly data: readonly Schemas['Change'][];
  readonly nextSeq: string;
  readonly hasMore: boolean;
  readonly revision: string;
  /** About `codes` that no price has. */
  readonly warnings: readonly Schemas['Warning'][];
}
type Calculate = paths['/v3/calculations']['post'];
type Calculated = Listing<Schemas['CalculationAnswer']>;
/** The results of a calculation, each with its receipt. */
export interface Calculation<D = number> extends Omit<Calculated, 'data'> {
  readonly data: readonly Exact<Calculated['data'][number], D>[];
}
/** A bearer token, or a function that returns one: it is called for each attempt of a call. */
export type Token = string | (() => string | Promise<string>);
/** `timeoutMs` (60,000) bounds all attempts of a call. A cancelled call rejects with its reason. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}
type Form = 'number' | 'text';
/**
 * `url`, `key` and `token` default to COMMODITY_PRICES_URL, COMMODITY_PRICES_KEY and
 * COMMODITY_PRICES_TOKEN of the environment. A client has a key or a token, not both.
 */
export interface ClientOptions<F extends Form> extends CallOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  readonly token?: Token | undefined;
  /** Sends the requests instead of the global `fetch`: through a proxy, with an own CA. */
  readonly fetch?: typeof fetch | undefined;
  /** `text`: prices and summaries have decimals as texts with every digit; changes never. */
  readonly decimals?: F;
  /** False drops x-min-revision, by which no answer is older than one that this client has. */
  readonly monotonic?: boolean;
  /** Receives each warning, such as a filter value that matches nothing; by default the console. */
  readonly onWarning?: (warning: Schemas['Warning'], of: Market | 'calculations') => void;
}
type Arguments<M extends Market> = [market: M, request?: PriceRequest<M>, call?: CallOptions];
/** The calls of a client. Each rejects with PricesError. */
export interface Client<D = number> {
  prices<M extends Market>(...call: Arguments<M>): Promise<Prices<M, D>>;
  /** The same in pages of `options.limit` records, 100 by default, all of one revision. */
  pages<M extends Market>(...call: Arguments<M>): AsyncGenerator<Prices<M, D>, void>;
  /** The same as a file. Each call has a file of its own; it is not kept in memory. */
  file<M extends Market>(
    market: M,
    format: FileFormat,
    request?: FileRequest<M>,
    call?: CallOptions,
  ): Promise<PriceFile>;
  /** Computes the figure of a contract: a formula over prices, rates and numbers. */
  calculate(request: Json<Calculate['requestBody']>, call?: CallOptions): Promise<Calculation<D>>;
  changes(request?: ChangesQuery, call?: CallOptions): Promise<Changes>;
  /** Prices of all readable markets that match a text, the best first. */
  search(
    text: string,
    request?: Omit<Query<'/v3/search'>, 'q'>,
    call?: CallOptions,
  ): Promise<Listing<Schemas['SearchResults']>>;
  /** All markets, with details of the readable ones. */
  markets(call?: CallOptions): Promise<Schemas['MarketList']['data']>;
  /** The values that each filter of a market takes. */
  filters<M extends Market>(
    market: M,
    call?: CallOptions,
  ): Promise<Listing<Got<`/v3/prices/${M}/filters`>>>;
  currencies(call?: CallOptions): Promise<Listing<Schemas['CurrencyList']>>;
  units(call?: CallOptions): Promise<Listing<Schemas['UnitList']>>;
  /** Exchange rates between two currencies, day by day. */
  rates(
    request: Query<'/v3/reference/rates'>,
    call?: CallOptions,
  ): Promise<Listing<Schemas['RateList']>>;
  /** The days on which prices are due, by default of the next two weeks. */
  calendar(
    request?: Query<'/v3/calendar'>,
    call?: CallOptions,
  ): Promise<Listing<Schemas['DueDays']>>;
  /** The credential of the client: its scopes, markets, limits and expiry. */
  me(call?: CallOptions): Promise<Schemas['Me']>;
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
const holdsKey = (url: string) =>
  /cps_[a-z]+_|eyJ[\w-]+\.eyJ/i.test(String(new URLSearchParams(url)));
type Loose = ReturnType<typeof JSON.parse>;
const isText = (value: unknown) => typeof value === 'string';
/** True for records, warnings and errors: each has a code. */
const isList = (list: Loose) => Array.isArray(list) && list.every((each) => isText(each?.code));
const numberOf = (text = '') => Number(/^[0-9a-z]+\.(\d+)$/.exec(text)?.[1] ?? -1);
const ADDRESS = /^https?:\/\/[^/@?#\s]+(\/[^@?#\s]*)?$/i;
/**
 * A pattern that finds a credential in the encodings of an echo, also cut after 12 characters.
 * After 64 it finds any text of its other characters: a pattern of a whole token compiles slowly.
 */
const secretOf = (secret: string) => {
  const forms = [...secret].map((each) => {
    const code = each.charCodeAt(0).toString(16);
    return `(\\\\{0,4}\\x${code}|%(25){0,4}${code}|\\\\{1,4}u00${code})`;
  });
  const [head, cut, rest] = [forms.slice(0, 12), forms.slice(12, 64), new Set(forms.slice(64))];
  const tail = rest.size > 0 ? `(${[...rest].join('|')})*` : '';
  return new RegExp(`${head.join('')}${cut.map((each) => `${each}?`).join('')}${tail}`, 'gi');
};
const fault = (text: string, members = {}) => Object.assign(new PricesError(text), members);
/** A request of the client. `isWhole` accepts the content of an answer; a file has none. */
interface Ask {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly body: string | null;
  readonly headers: Record<string, string>;
  readonly isWhole: ((content: Loose) => boolean) | null;
}
/** The `fetch` and the credential of requests. */
interface Transport {
  readonly fetch: typeof fetch;
  readonly header: 'x-api-key' | 'authorization';
  readonly secret: () => string | Promise<string>;
}
const UNSAFE = /[^\x21-\x7e]/;
async function attempt(
  ask: Ask,
  secret: string,
  { fetch, header }: Transport,
  signal: AbortSignal,
) {
  const { url, method, body: sent, isWhole } = ask;
  // A server may echo the headers of the request.
  const pattern = secretOf(secret);
  const hide = (text: string) => text.replace(pattern, '[secret]');
  const credential = header === 'authorization' ? `Bearer ${secret}` : secret;
  const headers = { ...ask.headers, [header]: credential };
  // A redirect would take the credential elsewhere.
  const init = { method, body: sent, headers, redirect: 'manual', signal } as const;
  const {
    ok,
    status,
    headers: fields,
    body,
  } = await fetch(url, init).catch((error) => {
    const why = error.cause?.code ?? (error.cause ?? error).message;
    throw fault(`${url} cannot be reached: ${hide(why)}`);
  });
  const kind = fields.get('content-type')?.split(';')[0]?.trim() ?? 'no content';
  if (ok && !isWhole && kind === ask.headers['accept']?.split(';')[0])
    return { content: null, fields, body, hide };
  const isJson = /^application\/(problem\+)?json$/i.test(kind);
  const [reader, decoder] = [body?.getReader(), new TextDecoder()];
  const none = { $metadata: { nextSeq: fields.get('x-next-seq') }, data: [] };
  let [text, content, part]: [string, Loose, Loose] = ['', null, null];
  try {
    for (part = await reader?.read(); part?.value; part = await reader?.read()) {
      text += decoder.decode(part.value, { stream: true });
      if (!isJson && text.length > 200) await reader?.cancel();
    }
    content = status === 204 ? none : isJson && JSON.parse(ok ? text : hide(text));
    if (ok && isWhole?.(content)) return { content, fields, body: null, hide };
  } catch {
    if (!part?.done || (ok && !text))
      throw fault(`${url} sent a part of its answer only: ${hide(text).slice(0, 200)}`);
  }
  const [to, retryAfterMs] = [fields.get('location'), retryAfterOf(fields.get('retry-after'))];
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
/** The bytes of an answer. Calls `end` once, at their end; `failure` is the error of a break. */
function bytesOf(body: ReadableStream<Uint8Array>, end: () => void, failure: () => unknown) {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(control) {
      const part = await reader.read().catch(() => {
        end();
        throw failure();
      });
      if (part.value) return control.enqueue(part.value);
      end();
      control.close();
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  });
}
const TRANSIENT = [null, 304, 429, 502, 503, 504];
/** Sends a request with retries: every call only reads. */
async function send(ask: Ask, transport: Transport, { signal, timeoutMs = 60_000 }: CallOptions) {
  const { url } = ask;
  const [control, endsAt] = [new AbortController(), performance.now() + timeoutMs];
  const stop = () => control.abort();
  const timer = setTimeout(stop, Math.min(timeoutMs, 2e9));
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  };
  /** Throws if the caller cancelled the call or its time is over. */
  const check = () => {
    signal?.throwIfAborted();
    if (control.signal.aborted) throw fault(`${url} did not answer within ${timeoutMs} ms`);
  };
  const secretNow = async () => {
    const aborted = new Promise<never>((_resolve, reject) => {
      control.signal.addEventListener('abort', reject);
    });
    const secret = await Promise.race([transport.secret(), aborted]).catch((cause) => {
      check();
      throw fault('No token: the function of the client failed', { cause });
    });
    if (!secret || UNSAFE.test(secret))
      throw fault('The token is empty, or has illegal characters');
    return secret;
  };
  signal?.addEventListener('abort', stop);
  try {
    for (let retries = 0; ; retries += 1) {
      signal?.throwIfAborted();
      const secret = await secretNow();
      const sent = attempt(ask, secret, transport, control.signal);
      const got = await sent.catch((error: PricesError) => error);
      if (!(got instanceof Error)) {
        const { content, fields, body, hide } = got;
        if (!body) end();
        const broken = () => {
          signal?.throwIfAborted();
          check();
          return fault(`${url} sent a part of its answer only`);
        };
        return { content, fields, hide, body: body && bytesOf(body, end, broken) };
      }
      check();
      const baseMs = got.retryAfterMs ?? 500 * 2 ** retries;
      // Clients that were refused together do not return together.
      const waitMs = baseMs + Math.random() * Math.min(baseMs, 500);
      const isLast = !TRANSIENT.includes(got.status) || retries === 3;
      if (isLast || performance.now() + waitMs >= endsAt) throw got;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        control.signal.onabort = () => resolve(clearTimeout(timer));
      });
    }
  } catch (error) {
    end();
    throw error;
  }
}
/** The warnings of a header; none if it is missing or malformed. */
function warningsOf(text: string): Schemas['Warning'][] {
  try {
    const list = JSON.parse(text);
    return isList(list) ? list : [];
  } catch {
    return [];
  }
}
const isPage = ({ $metadata: meta, data }: Loose, mark: unknown) =>
  isText(mark) && isList(data) && (meta.count ?? data.length) === data.length;
const arePrices = (content: Loose) =>
  isList(content.$metadata.warnings) &&
  areFound(content) &&
  !rowsOf(content).some((row) => Object.values(row).includes(undefined));
const areResults = ({ $metadata: { revision, warnings }, data }: Loose) =>
  isText(revision) && isList(warnings) && data.every((each: Loose) => isText(each.status));
const areChanges = (content: Loose) => isPage(content, content.$metadata.nextSeq);
const areFound = (content: Loose) => isPage(content, content.$metadata.revision);
const areMarkets = ({ data }: Loose) => data.every((each: Loose) => isText(each.slug));
/** True for a list of reference data, and for the values of filters by their name. */
const areValues = ({ $metadata: { revision }, data }: Loose) =>
  isText(revision) && !!data.valueOf();
const isMe = ({ kind, scopes }: Loose) => isText(kind) && Array.isArray(scopes);
/** The given credential, or else that of the environment. @throws PricesError */
function transportOf({ key, token, fetch }: ClientOptions<Form>, env: Record<string, unknown>) {
  const none = key === undefined && token === undefined;
  const [own, bearer] = none
    ? [env['COMMODITY_PRICES_KEY'], env['COMMODITY_PRICES_TOKEN']]
    : [key, token];
  if (own && bearer) throw fault('Give a key or a token, not both');
  const secret = own || bearer;
  if (!secret) throw fault('No API key; set COMMODITY_PRICES_KEY, or give key or token');
  if (isText(secret) && UNSAFE.test(secret as string)) throw fault('key has illegal characters');
  return {
    fetch: (...request) => (fetch ?? globalThis.fetch)(...request),
    header: own ? 'x-api-key' : 'authorization',
    secret: typeof secret === 'function' ? (secret as () => string) : () => secret as string,
  } as Transport;
}
/** Sends the requests of a client. @throws PricesError for a malformed address or credential */
function asker(options: ClientOptions<Form>) {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  const env = process?.env ?? {};
  const url = options.url ?? env['COMMODITY_PRICES_URL'] ?? 'http://127.0.0.1:3000';
  if (!ADDRESS.test(url) || holdsKey(url)) throw fault('url must be http(s)://host without a key');
  const transport = transportOf(options, env);
  const base = url.replace(/\/+$/, '').replace(/\/v3(\/prices)?$/, '');
  const bound: Record<string, string> = {};
  return async (
    path: string,
    isWhole: Ask['isWhole'],
    call: CallOptions = {},
    body: string | null = null,
    accept = 'application/json, application/problem+json',
  ) => {
    const { signal = options.signal, timeoutMs = options.timeoutMs } = call;
    if (holdsKey(path)) throw fault('An address must not hold a key');
    const headers = { ...bound, accept, ...(body && { 'content-type': 'application/json' }) };
    const method = body ? 'POST' : 'GET';
    const request = { url: `${base}/v3/${path}`, method, body, headers, isWhole } as const;
    const got = await send(request, transport, { signal, timeoutMs });
    const { content, fields } = got;
    const [min, revision] = ['x-min-revision', fields.get('x-data-revision') ?? ''];
    const known = fields.has(`${min}-unknown`) ? -1 : numberOf(bound[min]); // Another history
    if (options.monotonic !== false && numberOf(revision) > known) bound[min] = revision;
    return { ...got, data: content?.data, metadata: content?.$metadata, revision };
  };
}
type Asker = ReturnType<typeof asker>;
const pathOf = (market: Market) => `prices/${encodeURIComponent(market)}`;
type Subject = Market | 'calculations';
/** Reads by a POST, and passes the warnings on. */
function reader(ask: Asker, { onWarning, decimals }: ClientOptions<Form>) {
  const report = onWarning ?? ((each, of) => console.warn(of, each.code, each.detail));
  const texts = decimals === 'text' ? { decimalsAsText: true } : {};
  /** Each page has the warnings of the whole request. */
  const warn = (of: Subject, body: Loose, warnings: readonly Schemas['Warning'][]) => {
    for (const each of body.options.cursor ? [] : warnings) {
      report(each, of);
    }
  };
  async function read(path: string, of: Subject, sent: Loose, call?: CallOptions): Promise<Loose> {
    const body: Loose = { ...sent, options: { ...sent.options, ...texts } };
    const isWhole = of === 'calculations' ? areResults : arePrices;
    const { data, metadata, hide } = await ask(path, isWhole, call, JSON.stringify(body));
    metadata.warnings = JSON.parse(hide(JSON.stringify(metadata.warnings)));
    warn(of, body, metadata.warnings);
    return { data, metadata, revision: metadata.revision };
  }
  return { warn, read };
}
/** The calls that read prices, and that compute from them. */
function priceCalls(ask: Asker, options: ClientOptions<Form>) {
  const { warn, read } = reader(ask, options);
  const bodyOf = (request: Loose) =>
    ({ ...request, options: { includeSeries: true, ...request.options } }) as Loose;
  const prices = (market: Market, request: Loose = {}, call?: CallOptions) =>
    read(pathOf(market), market, bodyOf(request), call);
  const calculate = (request: Loose, call?: CallOptions) =>
    read('calculations', 'calculations', request, call);
  async function* pages(market: Market, request: Loose = {}, call?: CallOptions) {
    for (let own = { limit: 100, ...request.options }; own.cursor !== null; ) {
      const page = await prices(market, { ...request, options: own }, call);
      yield page;
      own = { ...own, cursor: page.metadata.nextCursor ?? null };
    }
  }
  async function file(market: Market, format: FileFormat, request = {}, call?: CallOptions) {
    if (!Object.hasOwn(MEDIA, format)) throw fault(`No format ${format}: ${Object.keys(MEDIA)}`);
    const sent = bodyOf(request);
    const got = await ask(pathOf(market), null, call, JSON.stringify(sent), MEDIA[format]);
    const { fields, body, revision, hide } = got;
    warn(market, sent, warningsOf(hide(fields.get('x-warnings') ?? '')));
    const bytes = async () => new Uint8Array(await new Response(body).arrayBuffer());
    return { body, revision, nextCursor: fields.get('x-next-cursor'), bytes };
  }
  return { prices, pages, file, calculate };
}
/** A path with a query, in which a list repeats its name. */
const withQuery = (path: string, request: object) => {
  const query = Object.entries(request).flatMap(([name, value = []]) =>
    [value].flat().map((each): [string, string] => [name, String(each)]),
  );
  return `${path}?${new URLSearchParams(query)}`;
};
/** The calls that read everything else. */
function listCalls(ask: Asker) {
  const list = async (path: string, isWhole: Ask['isWhole'], call?: CallOptions) => {
    const { data, metadata } = await ask(path, isWhole, call);
    return { data, metadata, revision: metadata.revision };
  };
  return {
    async changes(request = {}, call?: CallOptions) {
      const got = await ask(withQuery('changes', request), areChanges, call);
      const { nextSeq, hasMore = false, warnings = [] } = got.metadata;
      return { data: got.data, nextSeq, hasMore, revision: got.revision, warnings };
    },
    search: (q: string, request = {}, call?: CallOptions) =>
      list(withQuery('search', { ...request, q }), areFound, call),
    markets: async (call?: CallOptions) => (await ask('prices', areMarkets, call)).data,
    filters: (market: Market, call?: CallOptions) =>
      list(`${pathOf(market)}/filters`, areValues, call),
    currencies: (call?: CallOptions) => list('reference/currencies', areValues, call),
    units: (call?: CallOptions) => list('reference/units', areValues, call),
    rates: (request: object, call?: CallOptions) =>
      list(withQuery('reference/rates', request), areValues, call),
    calendar: (request = {}, call?: CallOptions) =>
      list(withQuery('calendar', request), areFound, call),
    me: async (call?: CallOptions) => (await ask('me', isMe, call)).content,
  };
}
/** @throws PricesError for a missing credential, two of them, and a malformed one or address */
export function createClient<F extends Form = 'number'>(options: ClientOptions<F> = {}) {
  const ask = asker(options);
  return { ...priceCalls(ask, options), ...listCalls(ask) } as unknown as Client<
    F extends 'text' ? string : number
  >;
}
