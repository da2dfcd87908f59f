import type { components, paths } from './schema.d.ts';
type Schemas = components['schemas'];
type Json<T extends {
    content: {
        'application/json': object;
    };
}> = T['content']['application/json'];
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
type Exact<T, D> = {
    [Name in keyof T]: Name extends Count ? T[Name] : Decimals<T[Name], D>;
};
type Item<M extends Market> = Json<Post<M>['responses'][200]>['data'][number];
/** A price with the dimensions of its market. D is `string` with `decimals: 'text'`. */
export type PriceRecord<M extends Market, D = number> = Exact<Item<M>, D>;
/** A response. `revision` is the revision of the data; `options.revision` reads it again. */
export interface Prices<M extends Market, D = number> {
    readonly data: readonly PriceRecord<M, D>[];
    readonly metadata: Schemas['Metadata'];
    readonly revision: string;
}
type Listing<T extends {
    $metadata: object;
    data: object;
}> = {
    readonly data: T['data'];
    readonly metadata: T['$metadata'];
    readonly revision: string;
};
type Got<Path extends `/v3/prices/${Market}/filters`> = Json<paths[Path]['get']['responses'][200]>;
/** Formats of files, by their media types. `rows` is JSON with an object for each row. */
declare const MEDIA: {
    readonly csv: "text/csv";
    readonly ndjson: "application/x-ndjson";
    readonly rows: "application/json;profile=rows";
    readonly parquet: "application/vnd.apache.parquet";
    readonly arrow: "application/vnd.apache.arrow.stream";
    readonly xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
};
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
    file<M extends Market>(market: M, format: FileFormat, request?: FileRequest<M>, call?: CallOptions): Promise<PriceFile>;
    /** Computes the figure of a contract: a formula over prices, rates and numbers. */
    calculate(request: Json<Calculate['requestBody']>, call?: CallOptions): Promise<Calculation<D>>;
    changes(request?: ChangesQuery, call?: CallOptions): Promise<Changes>;
    /** Prices of all readable markets that match a text, the best first. */
    search(text: string, request?: Omit<Query<'/v3/search'>, 'q'>, call?: CallOptions): Promise<Listing<Schemas['SearchResults']>>;
    /** All markets, with details of the readable ones. */
    markets(call?: CallOptions): Promise<Schemas['MarketList']['data']>;
    /** The values that each filter of a market takes. */
    filters<M extends Market>(market: M, call?: CallOptions): Promise<Listing<Got<`/v3/prices/${M}/filters`>>>;
    currencies(call?: CallOptions): Promise<Listing<Schemas['CurrencyList']>>;
    units(call?: CallOptions): Promise<Listing<Schemas['UnitList']>>;
    /** Exchange rates between two currencies, day by day. */
    rates(request: Query<'/v3/reference/rates'>, call?: CallOptions): Promise<Listing<Schemas['RateList']>>;
    /** The days on which prices are due, by default of the next two weeks. */
    calendar(request?: Query<'/v3/calendar'>, call?: CallOptions): Promise<Listing<Schemas['DueDays']>>;
    /** The credential of the client: its scopes, markets, limits and expiry. */
    me(call?: CallOptions): Promise<Schemas['Me']>;
}
/** A failed call. Members that were not sent are null. */
export declare class PricesError extends Error {
    readonly name = "PricesError";
    readonly status: number | null;
    readonly code: Schemas['Problem']['code'] | null;
    readonly errors: readonly Schemas['Violation'][];
    readonly requestId: string | null;
    readonly retryAfterMs: number | null;
}
/** One row for each price and date; `columns` has the names, also without rows. */
export declare function rowsOf<D>({ data }: Pick<Prices<Market, D>, 'data'>): {
    corrections: number;
    currency: string | null;
    unit: string;
    code: string;
    name: string;
    date: string;
    low: D | null;
    mid: D | null;
    high: D | null;
}[] & {
    columns: string[];
};
/** @throws PricesError for a missing credential, two of them, and a malformed one or address */
export declare function createClient<F extends Form = 'number'>(options?: ClientOptions<F>): Client<F extends "text" ? string : number>;
export {};
