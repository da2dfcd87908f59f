import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type Handler = (request: IncomingMessage, reply: ServerResponse) => void;

/** Time before a rejected connection is destroyed: an early reset would discard the response. */
const LINGER_MS = 1_000;

/** Closes a connection after its pending writes. */
export function closeAfterWrite(socket: Duplex): void {
  // Without a listener, a connection reset would crash the service.
  socket.on('error', () => socket.destroy());
  socket.end(() => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/**
 * Destroys a connection with many parsed requests. Node makes two errors for each at the close, and
 * their stacks would take most of the time: 12 µs a request instead of 5.
 */
function destroyCheaply(socket: Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  socket.destroy();
}

/**
 * The open connections. Each answers one request at a time: a second request before the reply to
 * the first is not answered, and closes the connection after that reply (RFC 9112, section 9.3.2).
 * A third closes it at once, since Node would parse and keep all further ones.
 *
 * A client may have the whole reply, and send its next request, before the event loop reports that
 * the last bytes were written. So a request that follows an ended reply is answered.
 */
export class Connections {
  /** The reply under way, or sent before its request arrived completely; null for neither. */
  readonly replies = new Map<Duplex, ServerResponse | null>();
  /** Connections that close after their reply. */
  readonly #closing = new WeakSet<Duplex>();
  /** Connections whose last bytes of an ended reply are not reported as written. */
  readonly #flushing = new WeakSet<Duplex>();
  readonly #isStopping: () => boolean;

  /** @param isStopping true from the time when each reply closes its connection */
  constructor(isStopping: () => boolean) {
    this.#isStopping = isStopping;
  }

  /** Follows the connections of a server, and closes them when it stops. */
  watch(server: Server): void {
    server.on('connection', (socket) => {
      this.replies.set(socket, null);
      socket.once('close', () => this.replies.delete(socket));
      // Node would reset a client that still sends, and it could not read its reply.
      socket.destroySoon = () => {
        if (this.replies.get(socket)?.req.complete === false) closeAfterWrite(socket);
        else Socket.prototype.destroySoon.call(socket);
      };
    });
    // Node would cut replies with unsent bytes, and wait for connections without a request.
    server.closeIdleConnections = () => {
      for (const socket of this.replies.keys()) this.close(socket as Socket);
    };
  }

  /** Wraps a request handler, so that a connection answers one request at a time. */
  handler(handle: Handler): Handler {
    return (request, reply) => {
      const { socket } = request;
      if (!socket.writable) return;
      const earlier = this.replies.get(socket);
      if (earlier && !this.#isSent(earlier, socket)) {
        // Node parses the 64 KiB that it reads at once, and keeps each request until the close.
        if (this.#closing.has(socket)) destroyCheaply(socket);
        else this.close(socket);
        // Node would queue the chunks of its body.
        request.on('data', () => {}).read(0);
        return;
      }
      this.replies.set(socket, reply);
      if (this.#isStopping()) reply.shouldKeepAlive = false;
      reply.once('close', () => this.#onReplyEnd(request, reply));
      handle(request, reply);
    };
  }

  /** Closes a connection after its reply, or at once without one. */
  close(socket: Socket): void {
    const reply = this.replies.get(socket);
    if (!reply || reply.closed) {
      socket.destroySoon();
    } else {
      this.#closing.add(socket);
      reply.shouldKeepAlive = false;
    }
  }

  /** True if a client may have the whole reply. */
  #isSent(reply: ServerResponse, socket: Socket): boolean {
    if (reply.closed) return true;
    if (!reply.writableEnded || this.#flushing.has(socket)) return false;
    this.#flushing.add(socket);
    reply.once('close', () => this.#flushing.delete(socket));
    return true;
  }

  #onReplyEnd(request: IncomingMessage, reply: ServerResponse): void {
    const { socket } = request;
    if (this.replies.get(socket) !== reply) return;
    if (!request.complete) {
      // After the bytes that arrive in the same turn.
      setImmediate(() => {
        if (!request.complete && socket.writable) socket.destroySoon();
      });
    } else {
      this.replies.set(socket, null);
    }
    if (this.#closing.has(socket) || this.#isStopping()) socket.destroySoon();
  }
}
