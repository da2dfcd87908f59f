import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Config } from '../../config/config.ts';
import { Problem } from '../../errors.ts';
import { corsHeaders, originsOf } from '../cors.ts';
import { problemOf, sendProblem } from '../problems.ts';
import { requestIdOf, SECURITY_HEADERS } from '../request-head.ts';
import { limitConnections } from './connection-limit.ts';
import { Connections, type Handler } from './connections.ts';
import { answer, type RejectedConnection, refuse } from './refuse.ts';

/*
 * Connections before there is a request: their limit, the refusal of other protocols than HTTP, and
 * their end.
 */

interface ServerOptions {
  readonly config: Config;
  readonly logger?: FastifyBaseLogger | undefined;
  /** Called for each connection that is rejected before a request is parsed. */
  readonly onRejected: (rejected: RejectedConnection) => void;
  /** Called for each connection that is closed at once, because there are too many. */
  readonly onConnectionRefused: (network: string) => void;
  /** Creates the context of a request that Fastify itself rejects: no hook runs for it. */
  readonly createContext: (request: FastifyRequest, reply: FastifyReply) => void;
}

/** Creates the HTTP server with its timeouts and size limits. */
function httpServer(config: Config, handle: Handler, connections: Connections): Server {
  const options = {
    headersTimeout: config.HEADERS_TIMEOUT_MS,
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    keepAliveTimeout: config.KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: config.HEADER_BYTES_MAX,
    connectionsCheckingInterval: 500,
    // The hook `checkHead` rejects it with a problem.
    requireHostHeader: false,
  };
  const server = createServer(options, connections.handler(handle));
  connections.watch(server);
  server.setTimeout(config.STALL_TIMEOUT_MS);
  return server;
}

/** Replaces responses of Node that have no problem as body. */
function replaceNodeResponses(
  server: Server,
  connections: Connections,
  { onRejected }: ServerOptions,
): void {
  // Node would respond 417 without a body. RFC 9110 allows ignoring an unknown expectation.
  server.on('checkExpectation', (request, reply) => server.emit('request', request, reply));
  // Node would close the connection without a response.
  server.on('connect', (_request, socket) => {
    const reply = connections.replies.get(socket);
    // The first reply closes the connection, as after any second request.
    if (reply && !reply.closed) return connections.close(socket as Socket);
    const headers = { allow: '' };
    const problem = new Problem('method_not_allowed', 'The service is not a proxy', { headers });
    onRejected(answer(socket, problem));
  });
}

/** Creates Fastify and its HTTP server, without hooks and routes. */
export function serverOf(options: ServerOptions): FastifyInstance {
  const { config, logger, onRejected, onConnectionRefused, createContext } = options;
  const proxies = config.TRUST_PROXY?.split(',') ?? [];
  const origins = originsOf(config.CORS_ORIGINS);
  const connections = new Connections(() => app.isStopping);
  const app: FastifyInstance = Fastify({
    ...(logger ? { loggerInstance: logger } : { logger: false }),
    genReqId: requestIdOf,
    trustProxy: proxies.length > 0 ? proxies : false,
    serverFactory: (handle) => httpServer(config, handle, connections),
    clientErrorHandler: (error, socket) => refuse(error, socket, connections, onRejected),
    // `logEnd` writes the one log line of a request.
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: (error, request, reply) => {
      const problem = problemOf(error);
      createContext(request, reply);
      request.context.failure = problem;
      // No hook runs for it.
      reply
        .headers({ ...SECURITY_HEADERS, connection: 'close' })
        .headers(corsHeaders(origins, request.headers));
      void sendProblem(request, reply, problem);
    },
    // A stopping service still handles requests on open connections.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
  });
  app.decorate('isStopping', false);
  app.addHook('preClose', async () => {
    app.isStopping = true;
  });
  replaceNodeResponses(app.server, connections, options);
  limitConnections(app.server, {
    connectionsMax: config.CONNECTIONS_MAX,
    proxies,
    onRefused: onConnectionRefused,
  });
  return app;
}
