import type { Late } from '../calendar/lateness.ts';
import { marketOf } from '../catalog/markets.ts';
import { codeKey } from '../catalog/match-key.ts';
import { allows, scopeOf } from '../catalog/scopes.ts';
import { OPERATIONS } from '../contract/schemas/changes.ts';
import { commitIdOf, wireText } from '../db/revisions.ts';
import type { LatePrice } from '../prices/calendar/late.ts';
import type { ChangeCounts, Commit } from '../prices/changes/commit.ts';

/*
 * Doorbells: messages that say that something changed, and where to read it. They are made from the
 * feed (`follow.ts`) and from late prices (`late.ts`), wait in the database, and are sent by
 * `sender.ts`. `subscriptions.ts` has the commands, `receiver.ts` the addresses that are allowed.
 */

/** The types of messages. */
export type MessageType = 'prices.changed' | 'price.late' | 'webhook.test';

/** The value of `--operations` that selects late prices, beside the operations of the feed. */
export const LATE = 'late';

/** Most codes that a message names. */
const CODES_MAX = 50;

/** The filters of a subscription; null for everything that its key may read. */
export interface Filter {
  readonly markets: readonly string[] | null;
  readonly codes: readonly string[] | null;
  /** Operations of the feed, and `late`. */
  readonly operations: readonly string[] | null;
}

/** The changes of a commit in one market. */
interface MarketChanges {
  readonly market: string;
  /** Numbers of the first and the last change of the prices. */
  readonly first: string;
  readonly last: string;
  readonly prices: number;
  readonly counts: ChangeCounts;
  readonly codes: readonly string[];
}

/** The stored content of `prices.changed`, by market: a send shows those that the key may read. */
interface ChangedContent extends Pick<Commit, 'revision' | 'previous' | 'recordedAt'> {
  readonly markets: readonly MarketChanges[];
}

/** A late price in a message. */
interface NamedLate extends Late {
  readonly market: string;
  readonly code: string;
}

/** The stored content of `price.late`. */
interface LateContent {
  readonly recordedAt: string;
  readonly markets: readonly {
    readonly market: string;
    readonly prices: number;
    readonly late: readonly NamedLate[];
  }[];
}

/** The content of `webhook.test`. */
interface TestContent {
  readonly recordedAt: string;
}

/** A stored message. */
export type Message = { readonly id: string } & (
  | { readonly type: 'prices.changed'; readonly content: ChangedContent }
  | { readonly type: 'price.late'; readonly content: LateContent }
  | { readonly type: 'webhook.test'; readonly content: TestContent }
);

/** State that decides the body of a message at each send. */
interface Sight {
  /** Public id of the subscription. */
  readonly webhook: string;
  readonly filter: Filter;
  /** The scopes of its key now. */
  readonly scopes: ReadonlySet<string>;
  readonly epoch: string;
  readonly publicUrl: string;
}

/** True if scopes allow a market. */
export function mayRead(scopes: ReadonlySet<string>, slug: string): boolean {
  const market = marketOf(slug);
  return market !== undefined && allows(scopes, scopeOf(market.slug));
}

/** A function that is true for prices that a subscription is about. */
function selects({ markets, codes }: Filter, scopes: ReadonlySet<string>) {
  const keys = codes && new Set(codes.map(codeKey));
  return ({ market, code }: { readonly market: string; readonly code: string }): boolean =>
    (markets?.includes(market) ?? true) &&
    (keys?.has(codeKey(code)) ?? true) &&
    mayRead(scopes, market);
}

const sumOf = (all: readonly ChangeCounts[]): ChangeCounts =>
  Object.fromEntries(
    OPERATIONS.flatMap((name) => {
      const count = all.reduce((sum, each) => sum + (each[name] ?? 0), 0);
      return count > 0 ? [[name, count]] : [];
    }),
  );

/** The wanted counts of a price. */
const wantedCounts = (counts: ChangeCounts, { operations }: Filter): ChangeCounts =>
  operations === null
    ? counts
    : Object.fromEntries(Object.entries(counts).filter(([name]) => operations.includes(name)));

/** The content of a message about a commit; null if it changed nothing that the filter selects. */
export function changedContent(
  { revision, previous, recordedAt, prices }: Commit,
  filter: Filter,
  scopes: ReadonlySet<string>,
): ChangedContent | null {
  const isSelected = selects(filter, scopes);
  const found = prices
    .filter(isSelected)
    .map((each) => ({ ...each, counts: wantedCounts(each.counts, filter) }))
    .filter(({ counts }) => Object.keys(counts).length > 0);
  const markets = [...Map.groupBy(found, ({ market }) => market)].map(([market, own]) => ({
    market,
    // In the order of the feed.
    first: own[0]?.first ?? '0',
    last: own.at(-1)?.last ?? '0',
    prices: own.length,
    counts: sumOf(own.map(({ counts }) => counts)),
    codes: own.slice(0, CODES_MAX).map(({ code }) => code),
  }));
  return markets.length === 0 ? null : { revision, previous, recordedAt, markets };
}

/** The content of a message about late prices; null if the filter selects none. */
export function lateContent(
  prices: readonly LatePrice[],
  filter: Filter,
  scopes: ReadonlySet<string>,
  recordedAt: string,
): LateContent | null {
  if (!(filter.operations?.includes(LATE) ?? true)) return null;
  const found = prices.filter(selects(filter, scopes));
  const markets = [...Map.groupBy(found, ({ market }) => market)].map(([market, own]) => ({
    market,
    prices: own.length,
    late: own.slice(0, CODES_MAX).map(({ code, late }) => ({ market, code, ...late })),
  }));
  return markets.length === 0 ? null : { recordedAt, markets };
}

/** Sum of the numbers of prices. */
const pricesOf = (markets: readonly { readonly prices: number }[]): number =>
  markets.reduce((sum, { prices }) => sum + prices, 0);

/**
 * An address of the service with the filter of a subscription, not with the markets of one message:
 * readers replace the position in it and go on.
 */
function addressOf(
  path: string,
  { publicUrl, filter, scopes }: Sight,
  more: Readonly<Record<string, readonly string[]>> = {},
): string {
  const market = filter.markets?.filter((each) => mayRead(scopes, each)) ?? [];
  const parameters = Object.entries({ ...more, market, codes: filter.codes ?? [] });
  const query = new URLSearchParams();
  for (const [name, values] of parameters) {
    for (const value of values) query.append(name, value);
  }
  return `${publicUrl}${path}${query.size === 0 ? '' : `?${query}`}`;
}

function changedData(content: ChangedContent, sight: Sight) {
  const markets = content.markets.filter(({ market }) => mayRead(sight.scopes, market));
  if (markets.length === 0) return null;
  const numbers = markets.flatMap(({ first, last }) => [BigInt(first), BigInt(last)]);
  numbers.sort((a, b) => (a < b ? -1 : 1));
  const seqOf = (number: bigint | undefined): string =>
    wireText(sight.epoch, `${number ?? 0n}.${commitIdOf(content.revision) ?? ''}`);
  const operations = sight.filter.operations?.filter((each) => each !== LATE) ?? [];
  const after = [`revision:${wireText(sight.epoch, content.previous)}`];
  return {
    webhook: sight.webhook,
    revision: wireText(sight.epoch, content.revision),
    fromSeq: seqOf(numbers[0]),
    toSeq: seqOf(numbers.at(-1)),
    counts: sumOf(markets.map(({ counts }) => counts)),
    markets: markets.map(({ market }) => market),
    prices: pricesOf(markets),
    codes: markets.flatMap(({ codes }) => codes).slice(0, CODES_MAX),
    changes: addressOf('/v3/changes', sight, { after, operations }),
  };
}

function lateData(content: LateContent, sight: Sight) {
  const markets = content.markets.filter(({ market }) => mayRead(sight.scopes, market));
  if (markets.length === 0) return null;
  return {
    webhook: sight.webhook,
    markets: markets.map(({ market }) => market),
    prices: pricesOf(markets),
    late: markets.flatMap(({ late }) => late).slice(0, CODES_MAX),
    calendar: addressOf('/v3/calendar', sight),
  };
}

function dataOf(message: Message, sight: Sight): object | null {
  if (message.type === 'prices.changed') return changedData(message.content, sight);
  if (message.type === 'price.late') return lateData(message.content, sight);
  return { webhook: sight.webhook };
}

/**
 * The body of a message. It is the same at each send, unless the key has lost scopes meanwhile.
 * @returns null if the key may not read anything that the message is about
 */
export function bodyOf(message: Message, sight: Sight): string | null {
  const data = dataOf(message, sight);
  if (data === null) return null;
  return JSON.stringify({ type: message.type, timestamp: message.content.recordedAt, data });
}
