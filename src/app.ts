import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type pg from 'pg';
import { PriceBook } from './book/book.ts';
import { MARKETS } from './catalog/markets.ts';
import type { Config } from './config/config.ts';
import { COMMON_SCHEMAS } from './contract/openapi/openapi.ts';
import {
  type BodyLimits,
  publishedOf,
  requestSchemasOf,
  schemasOf,
  sharedOf,
} from './contract/schemas/market.ts';
import { ratesReader } from './conversion/rates.ts';
import { asOfReader } from './db/as-of.ts';
import type { Client } from './db/client.ts';
import { databaseFailureOf } from './db/failures.ts';
import { Refusals } from './http/edge/refuse.ts';
import { serverOf } from './http/edge/server.ts';
import type { Handover } from './http/edge/stop.ts';
import type { Credentials } from './http/hooks/auth.ts';
import { LogLimit } from './http/hooks/log-lines.ts';
import { logRejected, type Observer } from './http/hooks/observe.ts';
import { contextCreator, pipeline } from './http/pipeline.ts';
import { changeRoutes } from './http/routes/changes.ts';
import { docsPage } from './http/routes/docs-page.ts';
import { documentRoutes, openapi } from './http/routes/documents.ts';
import { explorerRoutes } from './http/routes/explorer.ts';
import { healthRoutes } from './http/routes/health.ts';
import { priceRoutes, valuesRoute } from './http/routes/market.ts';
import { marketsRoute } from './http/routes/markets.ts';
import { meRoute } from './http/routes/me.ts';
import { referenceRoutes } from './http/routes/reference.ts';
import { searchRoute } from './http/routes/search.ts';
import { type LimitSettings, Limits } from './limits/limits.ts';
import type { Metrics } from './metrics/metrics.ts';
import { watchSources } from './metrics/sources.ts';
import type { Sources } from './prices/answer.ts';
import { feedOf } from './prices/changes/follow.ts';
import { sqlMissing } from './prices/conversion/missing-rates.ts';
import { marketPricesReader } from './prices/select/market-prices.ts';
import { referenceReader } from './prices/select/references.ts';
import { sqlSelector } from './prices/select/select.ts';
import { vocabularyReader } from './prices/select/vocabulary.ts';
import { sqlSeries } from './prices/series/from-sql.ts';
import { snapshotReader } from './prices/snapshot.ts';
import type { Tracing } from './tracing/tracing.ts';
import { VERSION } from './version.ts';

interface AppOptions {
  readonly config: Config;
  readonly client: Client;
  /** Connections of the account that notes use; without them nothing is noted and shared. */
  readonly usagePool?: pg.Pool | undefined;
  readonly logger?: FastifyBaseLogger;
  /** Without it nothing is counted. */
  readonly metrics?: Metrics | undefined;
  /** Without it nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** Who goes on with its connections when it stops. */
  readonly handover?: Handover | undefined;
}

/** States of the reference data that are kept; answers need the newest, late readers one before. */
const REFERENCES_KEPT = 4;
/** States of exchange rates that are kept, of some 4 MB each. */
const RATES_KEPT = 4;

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

/** The feed of changes, read apart from the prices. */
function feedOfChanges(
  app: FastifyInstance,
  { config, client }: AppOptions,
  credentials: Credentials,
): void {
  const { reads, link } = client;
  // Readers of the past have their own states, and leave those of the newest answers alone.
  const feed = feedOf({ reads, references: referenceReader(REFERENCES_KEPT) }, link);
  changeRoutes(app, feed, credentials, {
    limit: Math.min(config.CHANGES_LIMIT, config.CHANGES_LIMIT_MAX),
    limitMax: config.CHANGES_LIMIT_MAX,
    waitMaxSeconds: config.CHANGES_WAIT_MAX_SECONDS,
    waitingMax: config.CHANGES_WAITING_MAX,
  });
}

const bodyLimitsOf = (config: Config): BodyLimits => ({
  codesMax: config.CODES_MAX,
  itemsMax: config.LIST_ITEMS_MAX,
  itemLengthMax: config.ITEM_LENGTH_MAX,
  recordsMax: config.RECORDS_MAX,
});

/** Where answers are read from: the database. */
function sourcesOf({ config, client }: AppOptions): Sources {
  const { reads } = client;
  const db = reads.db();
  const vocabularies = vocabularyReader(db);
  return {
    db,
    reads,
    references: referenceReader(REFERENCES_KEPT),
    rates: ratesReader(RATES_KEPT),
    rateSource: config.FX_SOURCE,
    snapshot: snapshotReader(
      db,
      config.FX_SOURCE,
      asOfReader({
        primary: client.primary,
        waitMs: config.AS_OF_WAIT_MS,
        waitingMax: config.AS_OF_WAITING_MAX,
      }),
    ),
    vocabularies,
    select: sqlSelector(vocabularies, marketPricesReader(db)),
    series: sqlSeries(reads),
    missing: sqlMissing,
    pricesPerStatement: config.SERIES_PRICES_PER_STATEMENT,
    wideCellsMax: config.WIDE_CELLS_MAX,
  };
}

/**
 * The price book of the service. It is filled behind the answers once the service listens, and
 * follows commits as soon as they are heard of: requests see them in any case.
 */
function priceBook(
  app: FastifyInstance,
  { config, client }: AppOptions,
  sources: Sources,
): PriceBook | null {
  const bytes = config.PRICE_BOOK_BYTES;
  const onError = (error: Error) => {
    // The link reports a database that is away, once.
    const level = databaseFailureOf(error) === null ? 'warn' : 'debug';
    app.log[level]({ err: error }, 'the price book was not brought up to date');
  };
  const book = bytes > 0 ? new PriceBook({ bytes, sources, onError }) : null;
  app.decorate('book', book);
  if (book === null) return null;
  const look = () => client.link.look();
  let forget = () => {};
  app.addHook('onListen', async () => {
    forget = client.link.onCommit(() => {
      book.refresh(look).catch(onError);
    });
    book.fill(look).catch(onError);
  });
  app.addHook('onClose', async () => {
    forget();
    await book.close();
  });
  return book;
}

/** Wires the service together. It never listens and makes no connection by itself. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, client, metrics, logger, handover } = options;
  const limits = new Limits(limitSettingsOf(config), client.link.queues);
  const lines = new LogLimit(logger, config.LOG_ANONYMOUS_PER_SECOND);
  const observer: Observer = { metrics, lines };
  const refusals = new Refusals(logRejected(logger, observer));
  const createContext = contextCreator(
    config.REQUEST_DEADLINE_MS,
    () => client.link.look(),
    observer,
  );
  const app = serverOf({ config, logger, handover, refusals, createContext });
  const sources = sourcesOf(options);
  // Bodies are checked by the plan, which tells every violation at once; answers are bytes already.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  for (const schema of COMMON_SCHEMAS) app.addSchema(schema);

  const { credentials, exchange } = await pipeline(app, {
    ...options,
    limits,
    observer,
    refusals,
    createContext,
  });
  await openapi(app, {
    bodyBytes: config.BODY_BYTES_MAX,
    nesting: config.JSON_DEPTH_MAX,
    addressBytes: config.URL_BYTES_MAX,
    headerBytes: config.HEADER_BYTES_MAX,
  });

  const book = priceBook(app, options, sources);
  if (metrics) watchSources(metrics.registry, { client, limits, exchange, book });
  healthRoutes(app, VERSION, config.FX_SOURCE, client.health);
  app.addHook('onListen', async () => client.link.start());
  meRoute(app, limits);
  marketsRoute(app, sources);
  referenceRoutes(app, sources);
  searchRoute(app, sources, config.SEARCH_BYTES_MAX);
  const shared = requestSchemasOf(bodyLimitsOf(config));
  for (const schema of sharedOf(shared)) app.addSchema(schema);
  for (const market of MARKETS) {
    const schemas = schemasOf(market, shared);
    for (const schema of publishedOf(schemas)) app.addSchema(schema);
    priceRoutes(app, market, schemas, { sources, book });
    valuesRoute(app, market, schemas, sources);
  }
  feedOfChanges(app, options, credentials);
  documentRoutes(app);
  explorerRoutes(app);
  await docsPage(app);
  return app;
}
