import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type pg from 'pg';
import { PriceBook } from './book/book.ts';
import type { Judgement } from './calendar/lateness.ts';
import { MARKETS } from './catalog/markets.ts';
import type { Config } from './config/config.ts';
import { COMMON_SCHEMAS, type RequestLimits } from './contract/openapi/openapi.ts';
import {
  type BodyLimits,
  publishedOf,
  requestSchemasOf,
  schemasOf,
  sharedOf,
} from './contract/schemas/market.ts';
import { asOfReader, Primary } from './db/as-of.ts';
import type { Client } from './db/client.ts';
import { databaseFailureOf } from './db/failures.ts';
import { MinRevisionCheck } from './db/min-revision.ts';
import { serverOf } from './http/edge/server.ts';
import type { CredentialChecks } from './http/hooks/auth.ts';
import { RefusalLines } from './http/hooks/log-lines.ts';
import { logRefusedConnection, logRejected, type Observer } from './http/hooks/observe.ts';
import { contextCreator, pipeline } from './http/pipeline.ts';
import { AnswerCache } from './http/reply/answer-cache.ts';
import { calculationRoute } from './http/routes/calculations.ts';
import { calendarRoute } from './http/routes/calendar.ts';
import { changeRoutes } from './http/routes/changes.ts';
import { docsPage } from './http/routes/docs-page.ts';
import { documentRoutes, openapi } from './http/routes/documents.ts';
import { explorerRoutes } from './http/routes/explorer.ts';
import { healthRoutes } from './http/routes/health.ts';
import { helpRoutes } from './http/routes/help.ts';
import { meRoute } from './http/routes/me.ts';
import { marketsRoute, priceRoutes, valuesRoute } from './http/routes/prices.ts';
import { referenceRoutes } from './http/routes/reference.ts';
import { searchRoute } from './http/routes/search.ts';
import { type LimitSettings, Limits } from './limits/limits.ts';
import type { Metrics } from './metrics/metrics.ts';
import { watchSources } from './metrics/sources.ts';
import type { Readers } from './prices/answer/answer.ts';
import { duePricesReader } from './prices/calendar/due-prices.ts';
import { watchOf } from './prices/calendar/watch.ts';
import { feedOf } from './prices/changes/follow.ts';
import { codeMarketsReader } from './prices/market/code-markets.ts';
import { ratesReader } from './prices/market/rates.ts';
import { referenceReader } from './prices/market/references.ts';
import { samplesReader } from './prices/market/samples.ts';
import { sqlMarket } from './prices/market/sql-market.ts';
import { vocabularyReader } from './prices/market/vocabulary.ts';
import { snapshotReader } from './prices/snapshot.ts';
import { HeldBytes } from './std/held-bytes.ts';
import { VERSION } from './std/program.ts';
import { watchWebhooks } from './webhooks/status.ts';

interface AppOptions {
  readonly config: Config;
  readonly client: Client;
  /** Pool of the primary, for its newest revision, and usage data. */
  readonly usagePool?: pg.Pool | undefined;
  readonly logger?: FastifyBaseLogger;
  readonly metrics?: Metrics | undefined;
  /** The clock by which prices are late; tests give another. */
  readonly now?: () => number;
}

/** Cached revisions of the reference data; slow requests may still need an earlier one. */
const CACHED_REFERENCES_MAX = 4;
/** Cached revisions of the exchange rates, about 4 MB each. */
const CACHED_RATES_MAX = 4;

const limitSettingsOf = (config: Config): LimitSettings => ({
  principal: {
    perMinute: config.RATE_PER_MINUTE,
    burst: config.RATE_BURST,
    concurrent: config.CONCURRENT_MAX,
  },
  failuresPerMinute: config.FAILED_AUTH_PER_MINUTE,
  gate: {
    runningMax: config.RUNNING_MAX,
    waitingMax: config.WAITING_MAX,
    waitMs: config.WAITING_MS_MAX,
  },
});

/** Adds the change feed. */
function feedOfChanges(
  app: FastifyInstance,
  { config, client }: AppOptions,
  credentials: CredentialChecks,
): void {
  const { reads, link } = client;
  // A separate cache: reads of the past must not evict the newest revisions.
  const feed = feedOf({ reads, references: referenceReader(CACHED_REFERENCES_MAX) }, link);
  changeRoutes(app, feed, credentials, {
    limit: config.CHANGES_LIMIT,
    limitMax: config.CHANGES_LIMIT_MAX,
    waitMaxSeconds: config.CHANGES_WAIT_MAX_SECONDS,
    codesMax: config.CODES_MAX,
    itemLengthMax: config.ITEM_LENGTH_MAX,
    waitingMax: config.CHANGES_WAITING_MAX,
  });
}

const bodyLimitsOf = (config: Config): BodyLimits => ({
  codesMax: config.CODES_MAX,
  itemsMax: config.LIST_ITEMS_MAX,
  itemLengthMax: config.ITEM_LENGTH_MAX,
  recordsMax: config.RECORDS_MAX,
});

const requestLimitsOf = (config: Config): RequestLimits => ({
  bodyBytes: config.BODY_BYTES_MAX,
  nesting: config.JSON_DEPTH_MAX,
  addressBytes: config.URL_BYTES_MAX,
  headerBytes: config.HEADER_BYTES_MAX,
  wideCells: config.WIDE_CELLS_MAX,
});

const minRevisionCheck = ({ config, client }: AppOptions, primary: Primary): MinRevisionCheck =>
  new MinRevisionCheck({
    db: client.reads.db(),
    link: client.link,
    primary,
    waitMs: config.MIN_REVISION_WAIT_MS,
    lagMsMax: config.READY_LAG_MS_MAX,
  });

/** Readers of the database, from which answers are computed. */
function readersOf({ config, client }: AppOptions, primary: Primary): Readers {
  const { reads } = client;
  const db = reads.db();
  const references = referenceReader(CACHED_REFERENCES_MAX);
  const vocabularies = vocabularyReader(db);
  return {
    db,
    reads,
    references,
    rates: ratesReader(CACHED_RATES_MAX),
    rateSource: config.FX_SOURCE,
    snapshot: snapshotReader(
      db,
      config.FX_SOURCE,
      asOfReader({
        primary,
        waitMs: config.AS_OF_WAIT_MS,
        waitingMax: config.AS_OF_WAITING_MAX,
      }),
    ),
    vocabularies,
    samples: samplesReader(db),
    codeMarkets: codeMarketsReader(),
    duePrices: duePricesReader(db),
    market: sqlMarket({
      db,
      reads,
      references,
      vocabularies,
      pricesPerStatement: config.SERIES_PRICES_PER_STATEMENT,
    }),
    wideCellsMax: config.WIDE_CELLS_MAX,
    sheetRowsMax: config.SHEET_ROWS_MAX,
  };
}

/** Share of `PRICE_BOOK_BYTES` for the price book. The rest is for kept answers. */
const BOOK_SHARE = 3 / 4;

/**
 * Creates the price book. It is filled in the background once the service listens, and refreshed
 * after each commit; until then, requests read newer revisions from the database.
 */
function priceBook(
  app: FastifyInstance,
  { config, client }: AppOptions,
  readers: Readers,
): PriceBook | null {
  const bytes = config.PRICE_BOOK_BYTES;
  const onError = (error: Error) => {
    // The link logs an outage of the database once.
    const level = databaseFailureOf(error) === null ? 'warn' : 'debug';
    app.log[level]({ err: error }, 'the price book could not be refreshed');
  };
  const book = bytes > 0 ? new PriceBook({ bytes: BOOK_SHARE * bytes, readers, onError }) : null;
  app.decorate('book', book);
  if (book === null) return null;
  const checkRevision = () => client.link.newestRevision();
  let unsubscribe = () => {};
  app.addHook('onListen', async () => {
    unsubscribe = client.link.onCommit(() => {
      book.refresh(checkRevision).catch(onError);
    });
    book.fill(checkRevision).catch(onError);
  });
  app.addHook('onClose', async () => {
    unsubscribe();
    await book.close();
  });
  return book;
}

/** The time and the grace by which prices are late. */
const clockOf =
  ({ config, now = Date.now }: AppOptions) =>
  (): Judgement => ({ nowMs: now(), graceMinutes: config.LATE_GRACE_MINUTES });

/** Builds the service with all routes. It neither listens nor connects. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, client, metrics, logger } = options;
  const limits = new Limits(limitSettingsOf(config), client.link.queues);
  const observer: Observer = { metrics, refusals: new RefusalLines(logger) };
  const onRejected = logRejected(logger, observer);
  const createContext = contextCreator(
    config.REQUEST_DEADLINE_MS,
    new HeldBytes(config.HELD_BYTES_MAX),
    () => client.link.newestRevision(),
    observer,
  );
  const onConnectionRefused = logRefusedConnection(logger, observer);
  const app = serverOf({ config, logger, onRejected, onConnectionRefused, createContext });
  const primary = new Primary(options.usagePool, {
    silenceMs: config.DATABASE_SILENCE_MS,
    onFailure: (err) => app.log.warn({ err }, 'the primary at USAGE_DATABASE_URL does not answer'),
  });
  const readers = readersOf(options, primary);
  // `planOf` validates bodies and reports all violations; responses are serialised already.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  for (const schema of COMMON_SCHEMAS) app.addSchema(schema);

  const minRevision = minRevisionCheck(options, primary);
  const steps = { ...options, limits, observer, createContext, minRevision };
  const credentials = await pipeline(app, steps);
  await openapi(app, requestLimitsOf(config), config.PUBLIC_URL);

  const book = priceBook(app, options, readers);
  const answers = book && new AnswerCache((1 - BOOK_SHARE) * config.PRICE_BOOK_BYTES);
  app.decorate('answers', answers);
  const clock = clockOf(options);
  const watch = watchOf(readers, () => client.link.newestRevision(), clock);
  const webhooks = watchWebhooks(client.reads.db());
  const sources = { client, limits, book, answers, minRevision, watch, webhooks };
  if (metrics) watchSources(metrics.registry, sources);
  const about = { version: VERSION, rateSource: config.FX_SOURCE };
  healthRoutes(app, about, client, minRevision, clock);
  app.addHook('onListen', async () => client.link.start());
  meRoute(app, limits);
  marketsRoute(app, readers);
  referenceRoutes(app, readers);
  searchRoute(app, readers);
  calendarRoute(app, readers, credentials, clock);
  const shared = requestSchemasOf(bodyLimitsOf(config));
  for (const schema of sharedOf(shared)) app.addSchema(schema);
  for (const market of MARKETS) {
    const schemas = schemasOf(market, shared);
    for (const schema of publishedOf(schemas)) app.addSchema(schema);
    priceRoutes(app, market, schemas, { readers, book, answers });
    valuesRoute(app, market, schemas, readers);
  }
  calculationRoute(app, { readers, book, answers }, credentials);
  feedOfChanges(app, options, credentials);
  documentRoutes(app);
  explorerRoutes(app);
  helpRoutes(app);
  await docsPage(app);
  return app;
}
