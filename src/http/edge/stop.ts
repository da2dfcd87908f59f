import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';

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
 * never send a request, as browsers open them.
 * @param graceMs time in which an idle connection may still send a request
 * @returns the hook for requests that arrive during the stop
 */
export function stopGracefully(app: FastifyInstance, graceMs: number): onRequestHookHandler {
  const { server } = app;
  app.decorate('isStopping', false);
  app.addHook('preClose', async () => {
    app.isStopping = true;
  });
  /** Called after the last reply of a connection. */
  let onIdle = (_socket: Socket): void => {};
  const repliesBySocket = openReplies(app, (socket) => onIdle(socket));
  server.closeIdleConnections = () => {
    announceClose(repliesBySocket);
    setTimeout(() => {
      onIdle = (socket) => socket.destroySoon();
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
