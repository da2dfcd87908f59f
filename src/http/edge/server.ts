import { createServer, type Server } from 'node:http';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Config } from '../../config/config.ts';
import { Problem } from '../../errors.ts';
import { CAREFUL_HEADERS, requestIdOf } from '../head.ts';
import { problemOf, sendProblem } from '../problems.ts';
import { closeGently, type Handler, Pipelines } from './in-turn.ts';
import { isTooLate, type Refusals } from './refuse.ts';
import type { Heirs } from './stop.ts';

interface ServerOptions {
  readonly config: Config;
  readonly logger?: FastifyBaseLogger | undefined;
  readonly heirs?: Heirs | undefined;
  readonly refusals: Refusals;
  /** Begins the record of a request that Fastify itself refuses: no hook is called for it. */
  readonly begin: (request: FastifyRequest, reply: FastifyReply) => void;
}

/** The HTTP server, with its own limits. */
function httpServer(config: Config, handle: Handler, pipelines: Pipelines): Server {
  const options = {
    headersTimeout: config.HEADERS_TIMEOUT_MS,
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    keepAliveTimeout: config.KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: config.HEADER_BYTES_MAX,
    connectionsCheckingInterval: 500,
    // A hook says it as a problem.
    requireHostHeader: false,
  };
  const server = createServer(options, pipelines.handler(handle));
  pipelines.watch(server);
  server.setTimeout(config.STALL_TIMEOUT_MS);
  return server;
}

/** Replaces the answers that Node would give on a connection by itself, or not at all. */
function watchConnections(
  { server }: FastifyInstance,
  connectionsMax: number,
  refusals: Refusals,
): void {
  server.maxConnections = connectionsMax;
  server.on('connection', closeGently);
  // Node would answer 417 without a body; a server may pass over what it does not know.
  server.on('checkExpectation', (request, reply) => server.emit('request', request, reply));
  // Node would hang up without a word.
  server.on('connect', (_request, socket) => {
    const headers = { allow: '' };
    const problem = new Problem('method_not_allowed', 'The service is no proxy', { headers });
    refusals.refuseWith(problem, socket);
  });
}

/** The HTTP server of the service, and Fastify over it, without hooks and routes. */
export function serverOf(options: ServerOptions): FastifyInstance {
  const { config, logger, heirs, refusals, begin } = options;
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
      begin(request, reply);
      request.context.failure = problem;
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
  watchConnections(app, config.CONNECTIONS_MAX, refusals);
  return app;
}
