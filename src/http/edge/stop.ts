import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';

/** Handover of the idle connections of a stopping worker to other workers. */
export interface Handover {
  /** True if other workers take over the connections of this stop. */
  readonly isActive: boolean;
  /** Sends a connection without a partly read request to another worker. */
  send(socket: Socket): void;
  /** True if a connection was taken over from another worker and has sent no request since. */
  isAwaitingRequest(socket: Socket): boolean;
}

interface StopOptions {
  /** Time in which an idle connection may still send a request. */
  readonly graceMs: number;
  readonly handover?: Handover | undefined;
}

/**
 * Finds connections without a request, even a partial one. Only Node knows which keep-alive
 * connections are idle, and only its `closeIdleConnections` reveals them, by calling `destroy`.
 */
function idleConnections(closeIdle: () => void, sockets: Iterable<Socket>): Socket[] {
  const idle: Socket[] = [];
  const all = [...sockets];
  for (const socket of all) {
    socket.destroy = () => {
      idle.push(socket);
      return socket;
    };
  }
  closeIdle();
  for (const socket of all) delete (socket as { destroy?: unknown }).destroy;
  return idle.concat(all.filter(({ bytesRead }) => bytesRead === 0));
}

/** Unfinished replies of each open connection. `onIdle` is called after the last of them. */
function openReplies(
  app: FastifyInstance,
  onIdle: (socket: Socket) => void,
): ReadonlyMap<Socket, ReadonlySet<ServerResponse>> {
  const repliesBySocket = new Map<Socket, Set<ServerResponse>>();
  app.server.on('connection', (socket) => {
    repliesBySocket.set(socket, new Set());
    socket.once('close', () => repliesBySocket.delete(socket));
  });
  // Runs before the response, whose Connection header depends on it.
  app.server.prependListener('request', ({ socket }, reply) => {
    if (app.isStopping) reply.shouldKeepAlive = false;
    repliesBySocket.get(socket)?.add(reply);
    reply.once('close', () => {
      const replies = repliesBySocket.get(socket);
      if (replies?.delete(reply) && replies.size === 0) onIdle(socket);
    });
  });
  return repliesBySocket;
}

/** Adds `Connection: close` to the last reply of each connection, so that clients stop sending. */
function announceClose(repliesBySocket: ReadonlyMap<Socket, ReadonlySet<ServerResponse>>): void {
  for (const replies of repliesBySocket.values()) {
    const last = [...replies].at(-1);
    if (last) last.shouldKeepAlive = false;
  }
}

/**
 * Closes each connection of a stopping service when its replies are sent. Node would cut replies
 * with unsent bytes for a slow reader, and would wait for connections that become idle later or
 * never send a request, as browsers open them. With an active handover, idle connections go to
 * other workers instead, because a request may be in transit on any of them.
 * @returns the hook for requests that arrive during the stop
 */
export function stopGracefully(
  app: FastifyInstance,
  { graceMs, handover }: StopOptions,
): onRequestHookHandler {
  const { server } = app;
  app.decorate('isStopping', false);
  app.addHook('preClose', async () => {
    app.isStopping = !handover?.isActive;
  });
  const closeIdle = server.closeIdleConnections.bind(server);
  /** Called after the last reply of a connection. */
  let onIdle = (_socket: Socket): void => {};
  const repliesBySocket = openReplies(app, (socket) => onIdle(socket));
  const handOverIdle = (): void => {
    for (const socket of idleConnections(closeIdle, repliesBySocket.keys())) {
      if (repliesBySocket.get(socket)?.size === 0 && !socket.writableEnded) handover?.send(socket);
    }
  };
  server.closeIdleConnections = () => {
    if (handover?.isActive) {
      onIdle = handOverIdle;
      // After the listener is closed.
      setImmediate(handOverIdle);
    } else {
      announceClose(repliesBySocket);
    }
    setTimeout(() => {
      onIdle = (socket) => {
        // The reply had no `Connection: close`, so the next request may be in transit.
        if (handover?.isActive) handOverIdle();
        socket.destroySoon();
      };
      for (const [socket, replies] of repliesBySocket) if (replies.size === 0) socket.destroySoon();
    }, graceMs).unref();
  };
  return ({ raw }, reply, done) => {
    // Fastify adds `Connection: close` to every reply during a stop, even if others follow it.
    if (reply.raw.hasHeader('connection')) {
      const last = [...(repliesBySocket.get(raw.socket) ?? [])].at(-1);
      if (last !== undefined && last !== reply.raw) reply.raw.removeHeader('connection');
    }
    done();
  };
}
