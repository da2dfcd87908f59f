import type { components, paths } from './schema.d.ts';
type Schemas = components['schemas'];
type Json<T extends {
    content: {
        'application/json': object;
    };
}> = T['content']['application/json'];
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
/** @throws PricesError for a missing key, and for a malformed key or address */
export declare function createClient<F extends Form = 'number'>(options?: ClientOptions<F>): Client<F extends "text" ? string : number>;
export {};
