import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';

/** Other processes that go on with the connections of this one. */
export interface Heirs {
  /** True if there are any at this stop. */
  readonly hasHeirs: boolean;
  /** Gives them a connection of which no part of a request was read. */
  leave(socket: Socket): void;
  /** True if it was taken over from another process and waits for its next request. */
  isKept(socket: Socket): boolean;
}

interface StopOptions {
  /** How long a connection without a request may still send one. */
  readonly graceMs: number;
  readonly heirs?: Heirs | undefined;
}

/**
 * Finds connections on which nothing is asked, not even in part: of those that were used only Node
 * knows, and it tells none but by closing them.
 */
function quietOf(closeIdle: () => void, sockets: Iterable<Socket>): Socket[] {
  const quiet: Socket[] = [];
  const all = [...sockets];
  for (const socket of all) {
    socket.destroy = () => {
      quiet.push(socket);
      return socket;
    };
  }
  closeIdle();
  for (const socket of all) delete (socket as { destroy?: unknown }).destroy;
  return quiet.concat(all.filter(({ bytesRead }) => bytesRead === 0));
}

/** The answers under way on each open connection; `atRest` hears of one whose last is out. */
function underWayOn(
  app: FastifyInstance,
  atRest: (socket: Socket) => void,
): ReadonlyMap<Socket, ReadonlySet<ServerResponse>> {
  const underWay = new Map<Socket, Set<ServerResponse>>();
  app.server.on('connection', (socket) => {
    underWay.set(socket, new Set());
    socket.once('close', () => underWay.delete(socket));
  });
  // Before the request is answered: the answer says whether its connection ends with it.
  app.server.prependListener('request', ({ socket }, reply) => {
    if (app.isStopping) reply.shouldKeepAlive = false;
    underWay.get(socket)?.add(reply);
    reply.once('close', () => {
      const replies = underWay.get(socket);
      if (replies?.delete(reply) && replies.size === 0) atRest(socket);
    });
  });
  return underWay;
}

/** Has the last answer of each connection say that it ends: what came after it would be lost. */
function tellThatTheyEnd(underWay: ReadonlyMap<Socket, ReadonlySet<ServerResponse>>): void {
  for (const replies of underWay.values()) {
    const last = [...replies].at(-1);
    if (last) last.shouldKeepAlive = false;
  }
}

/**
 * Ends each connection of a stopping service as soon as its answers are out. Node's own way would
 * cut answers whose last bytes wait for a slow reader, and would wait for connections that fall
 * idle later or that never asked for anything, as browsers open them. Where others go on with its
 * work they get the connections without a request: a request may be on its way over any of them.
 * @returns the hook of requests that arrive meanwhile
 */
export function gentleStop(
  app: FastifyInstance,
  { graceMs, heirs }: StopOptions,
): onRequestHookHandler {
  const { server } = app;
  app.decorate('isStopping', false);
  app.addHook('preClose', async () => {
    app.isStopping = !heirs?.hasHeirs;
  });
  const closeIdle = server.closeIdleConnections.bind(server);
  /** Called when the last answer of a connection is sent. */
  let atRest = (_socket: Socket): void => {};
  const underWay = underWayOn(app, (socket) => atRest(socket));
  const leaveQuiet = (): void => {
    for (const socket of quietOf(closeIdle, underWay.keys())) {
      if (underWay.get(socket)?.size === 0 && !socket.writableEnded) heirs?.leave(socket);
    }
  };
  server.closeIdleConnections = () => {
    if (heirs?.hasHeirs) {
      atRest = leaveQuiet;
      // Once the listener is closed.
      setImmediate(leaveQuiet);
    } else {
      tellThatTheyEnd(underWay);
    }
    setTimeout(() => {
      atRest = (socket) => {
        // The client was not told that it ends, and may ask again at this very moment.
        if (heirs?.hasHeirs) leaveQuiet();
        socket.destroySoon();
      };
      for (const [socket, replies] of underWay) if (replies.size === 0) socket.destroySoon();
    }, graceMs).unref();
  };
  return ({ raw }, reply, done) => {
    // Fastify closes after each answer that begins during a stop; others of the connection follow.
    if (reply.raw.hasHeader('connection')) {
      const last = [...(underWay.get(raw.socket) ?? [])].at(-1);
      if (last !== undefined && last !== reply.raw) reply.raw.removeHeader('connection');
    }
    done();
  };
}
