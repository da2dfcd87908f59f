import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Ends each connection of a stopping service as soon as its answers are out. Node's own way would
 * cut answers whose last bytes wait for a slow reader, and would wait for connections that fall
 * idle later or that never asked for anything, as browsers open them.
 * @param graceMs how long a connection without a request may still send one
 */
export function gentleStop(app: FastifyInstance, graceMs: number): void {
  const { server } = app;
  /** The answers under way on each open connection. */
  const underWay = new Map<Socket, number>();
  let isStopping = false;
  const count = (socket: Socket, change: number): void => {
    const before = underWay.get(socket);
    if (before === undefined) return;
    underWay.set(socket, before + change);
    if (isStopping && before + change === 0) socket.destroySoon();
  };
  server.on('connection', (socket) => {
    underWay.set(socket, 0);
    socket.once('close', () => underWay.delete(socket));
  });
  server.on('request', ({ socket }, reply) => {
    count(socket, 1);
    reply.once('close', () => count(socket, -1));
  });
  server.closeIdleConnections = () => {
    setTimeout(() => {
      isStopping = true;
      for (const [socket, answers] of underWay) if (answers === 0) socket.destroySoon();
    }, graceMs).unref();
  };
}
