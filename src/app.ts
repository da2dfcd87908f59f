import { createServer, type Server } from 'node:http';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type pg from 'pg';
import { MARKETS } from './catalog/markets.ts';
import type { Config } from './config.ts';
import {
  type BodyLimits,
  publishedOf,
  requestSchemasOf,
  schemasOf,
  sharedOf,
} from './contract/market.ts';
import { COMMON_SCHEMAS } from './contract/openapi.ts';
import { ratesReader } from './conversion/rates.ts';
import { asOfReader } from './db/as-of.ts';
import type { Client } from './db/client.ts';
import { type LimitSettings, Limits } from './limits/limits.ts';
import type { Metrics } from './metrics/metrics.ts';
import { watchSources } from './metrics/sources.ts';
import { auth, expiryWarning } from './plugins/auth.ts';
import { receiveBodies } from './plugins/body-bytes.ts';
import { priceBook } from './plugins/book.ts';
import { letIn, letInLast, letOpenIn, placeOf, turnAway } from './plugins/gate.ts';
import { CAREFUL_HEADERS, careful } from './plugins/headers.ts';
import { type Handler, Pipelines } from './plugins/in-turn.ts';
import { jsonBody } from './plugins/json-body.ts';
import { limitsAfterAuth, limitsBeforeAuth } from './plugins/limits.ts';
import { LogLimit } from './plugins/log-lines.ts';
import { methods } from './plugins/methods.ts';
import { type Observer, observe, tellAtEnd, tellRefused } from './plugins/observe.ts';
import { problemOf, problems, sendProblem } from './plugins/problems.ts';
import { isTooLate, Refusals } from './plugins/refuse.ts';
import { requestId, requestIdOf } from './plugins/request-id.ts';
import { gentleStop, type Heirs } from './plugins/stop.ts';
import { traced } from './plugins/tracing.ts';
import { answerOnce, transport } from './plugins/transport.ts';
import { usage } from './plugins/usage.ts';
import { work } from './plugins/work.ts';
import type { Sources } from './prices/answer.ts';
import { feedOf } from './prices/changes/follow.ts';
import { sqlMissing } from './prices/missing-rates-sql.ts';
import { referenceReader } from './prices/references.ts';
import { sqlSelector } from './prices/select.ts';
import { sqlSeries } from './prices/series-sql.ts';
import { stateReader } from './prices/state.ts';
import { vocabularyReader } from './prices/vocabulary.ts';
import { changeRoutes } from './routes/changes.ts';
import { docsPage } from './routes/docs-page.ts';
import { documentRoutes, openapi } from './routes/documents.ts';
import { healthRoutes } from './routes/health.ts';
import { priceRoutes, valuesRoute } from './routes/market.ts';
import { marketsRoute } from './routes/markets.ts';
import { meRoute } from './routes/me.ts';
import { referenceRoutes } from './routes/reference.ts';
import type { Places } from './std/places.ts';
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
  readonly heirs?: Heirs | undefined;
}

/** States of the reference data that are kept; answers need the newest, late readers one before. */
const REFERENCES_KEPT = 4;
/** States of exchange rates that are kept, of some 4 MB each. */
const RATES_KEPT = 4;

/** The HTTP server, with its own limits. */
function httpServer(config: Config, handle: Handler, pipelines: Pipelines): Server {
  const options = {
    headersTimeout: config.HEADERS_TIMEOUT_MS,
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    keepAliveTimeout: config.KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: config.HEADER_BYTES_MAX,
    connectionsCheckingInterval: 500,
    // The transport plugin says it as a problem.
    requireHostHeader: false,
  };
  const server = createServer(options, pipelines.handler(handle));
  pipelines.watch(server);
  server.setTimeout(config.STALL_TIMEOUT_MS);
  return server;
}

function serverOf(
  options: AppOptions,
  { refusals, observer }: { readonly refusals: Refusals; readonly observer: Observer },
): FastifyInstance {
  const { config, logger, heirs } = options;
  const pipelines = new Pipelines({
    waitingMax: config.PIPELINED_MAX,
    allMax: config.PIPELINED_ALL_MAX,
    graceMs: config.HEADERS_TIMEOUT_MS,
  });
  const app = Fastify({
    ...(logger ? { loggerInstance: logger } : { logger: false }),
    genReqId: requestIdOf,
    trustProxy: config.TRUST_PROXY?.split(',') ?? false,
    serverFactory: (handle) => httpServer(config, handle, pipelines),
    clientErrorHandler: (error, socket) => {
      // The time for the headers of a request that has not begun.
      if (isTooLate(error) && heirs?.isKept(socket)) return;
      const refuse = () => refusals.refuse(error, socket);
      if (!isTooLate(error) || !pipelines.excuses(socket, refuse)) refuse();
    },
    // Each request has one line, which the plugin writes that observes it.
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: (error, request, reply) => {
      const problem = problemOf(error);
      request.failure = problem;
      tellAtEnd(request, reply, observer);
      refusals.isAnswered(request.raw.socket);
      // No hook is called for it.
      reply.headers({ ...CAREFUL_HEADERS, connection: 'close' });
      void sendProblem(request, reply, problem);
    },
    // A stopping service finishes what it is asked; the listener is closed by then.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
  });
  answerOnce(app, refusals);
  return app;
}

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

/** What begins with each request, in this order: it is told, and it has a place or none. */
function begin(
  app: FastifyInstance,
  { config, tracing }: AppOptions,
  parts: { readonly gate: Places; readonly refusals: Refusals; readonly observer: Observer },
): void {
  const { gate, refusals, observer } = parts;
  observe(app, observer);
  if (tracing) traced(app, tracing);
  turnAway(app, gate, refusals);
  receiveBodies(app, config.BODY_BYTES_MAX);
  work(app, config.REQUEST_DEADLINE_MS);
  requestId(app);
}

/** Who may, and how often: limits, credentials and scopes, in the order of their checks. */
async function guard(app: FastifyInstance, options: AppOptions, limits: Limits) {
  const { config, client, usagePool } = options;
  const { reads, link } = client;
  letIn(app, limits.gate, link.lines);
  const { OPEN_WAITING_MAX: waitingMax, WAITING_MS_MAX: waitMs } = config;
  letOpenIn(app, { waitingMax, waitMs }, config.OPEN_PER_SECOND);
  const failed = limitsBeforeAuth(app, limits);
  const deniedBurst = config.KEY_DENIED_BURST;
  const used = usagePool ? usage(app, usagePool, { limits, deniedBurst }) : null;
  await app.register(auth, {
    db: reads.db(),
    link,
    settings: config,
    lag: { nowMs: () => link.lagMs, mostMs: config.KEYS_LAG_MS_MAX },
    heard: (request, verdict) => {
      failed(request, verdict);
      used?.heard(request, verdict);
    },
    enter: placeOf(limits.gate),
  });
  limitsAfterAuth(app, limits);
  letInLast(app, limits.gate);
  expiryWarning(app);
  return used?.exchange ?? null;
}

/** The feed of changes, read apart from the prices. */
function feedOfChanges(app: FastifyInstance, { config, client }: AppOptions): void {
  const { reads, link } = client;
  // Readers of the past have their own states, and leave those of the newest answers alone.
  changeRoutes(app, feedOf({ reads, references: referenceReader(REFERENCES_KEPT) }, link), {
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
    state: stateReader(
      db,
      config.FX_SOURCE,
      asOfReader({
        primary: client.primary,
        waitMs: config.AS_OF_WAIT_MS,
        waitingMax: config.AS_OF_WAITING_MAX,
      }),
    ),
    vocabularies,
    select: sqlSelector(vocabularies),
    series: sqlSeries(reads),
    missing: sqlMissing,
    pricesPerStatement: config.SERIES_PRICES_PER_STATEMENT,
  };
}

/** Wires the service together. It never listens and makes no connection by itself. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, client, metrics } = options;
  const limits = new Limits(limitSettingsOf(config), client.link.lines);
  const lines = new LogLimit(options.logger, config.LOG_ANONYMOUS_PER_SECOND);
  const observer: Observer = { metrics, lines };
  const refusals = new Refusals(tellRefused(options.logger, observer));
  const app = serverOf(options, { refusals, observer });
  const sources = sourcesOf(options);
  // Bodies are checked by the plan, which tells every violation at once; answers are bytes already.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  for (const schema of COMMON_SCHEMAS) app.addSchema(schema);

  begin(app, options, { gate: limits.gate, refusals, observer });
  problems(app);
  careful(app);
  const { URL_BYTES_MAX: urlBytesMax, CONNECTIONS_MAX: connectionsMax } = config;
  transport(app, { urlBytesMax, connectionsMax, refusals });
  gentleStop(app, { graceMs: config.STOP_GRACE_MS, heirs: options.heirs });
  methods(app);
  jsonBody(app, { depthMax: config.JSON_DEPTH_MAX, bytesMax: config.BODY_BYTES_MAX });
  const exchange = await guard(app, options, limits);
  await openapi(app, {
    bodyBytes: config.BODY_BYTES_MAX,
    nesting: config.JSON_DEPTH_MAX,
    addressBytes: config.URL_BYTES_MAX,
    headerBytes: config.HEADER_BYTES_MAX,
  });

  const book = priceBook(app, { bytes: config.PRICE_BOOK_BYTES, sources, client });
  if (metrics) watchSources(metrics.registry, { client, limits, exchange, book });
  healthRoutes(app, VERSION, config.FX_SOURCE, client.health);
  app.addHook('onListen', async () => client.link.start());
  meRoute(app, limits);
  marketsRoute(app, sources);
  referenceRoutes(app, sources);
  const shared = requestSchemasOf(bodyLimitsOf(config));
  for (const schema of sharedOf(shared)) app.addSchema(schema);
  for (const market of MARKETS) {
    const schemas = schemasOf(market, shared);
    for (const schema of publishedOf(schemas)) app.addSchema(schema);
    priceRoutes(app, market, schemas, { sources, book });
    valuesRoute(app, market, schemas, sources);
  }
  feedOfChanges(app, options);
  documentRoutes(app);
  await docsPage(app);
  return app;
}
