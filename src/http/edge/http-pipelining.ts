import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { closeAfterWrite, isArriving } from './refuse.ts';

export type Handler = (request: IncomingMessage, reply: ServerResponse) => void;

interface PipelineLimits {
  /** Queued requests of one connection, beyond which the connection is not read. */
  readonly waitingMax: number;
  /**
   * Queued requests of all connections. Beyond this bound, a connection with more than `waitingMax`
   * is closed.
   */
  readonly allMax: number;
  /** Extra time for a request that was late because its connection was not read. */
  readonly graceMs: number;
}

/** Maximum bytes of a connection that are parsed before its queued requests are counted. */
const SLICE_BYTES = 4_096;

/** The same while requests are queued: a request of 18 bytes takes about 10 KB once parsed. */
const PIPELINED_BYTES = 512;

type PipelinedRequest = readonly [request: IncomingMessage, reply: ServerResponse];

/** A connection with its queued requests and unparsed bytes. */
interface PipelinedConnection {
  readonly socket: Socket;
  readonly parse: (bytes: Buffer) => void;
  isBusy: boolean;
  /** Number of parsed request heads, and the last request. */
  parsed: number;
  last: IncomingMessage | null;
  waiting: PipelinedRequest[];
  unparsed: Buffer[];
  isParsing: boolean;
}

/** True until the body of the last request has arrived. */
const hasPartBody = ({ last }: PipelinedConnection): boolean => last?.complete === false;

/** True if the arriving request waits for the reply to an earlier one. */
const isQueued = (connection: PipelinedConnection): boolean =>
  hasPartBody(connection)
    ? connection.waiting.length > 0
    : connection.isBusy || connection.unparsed.length > 0;

/** Closes a connection whose request was answered before its body arrived. */
function endUnread({ complete, socket }: IncomingMessage): void {
  if (!complete && socket.writable) socket.destroySoon();
}

/**
 * Handles the requests of a connection one after another: each begins after the reply to the one
 * before (pipelining, RFC 9112, section 9.3.2). Node alone would begin all requests of a 64 KiB
 * read at once, about 2,000, even if the client reads no replies.
 */
export class Pipelines {
  readonly #connections = new WeakMap<Socket, PipelinedConnection>();
  readonly #limits: PipelineLimits;
  #waiting = 0;

  constructor(limits: PipelineLimits) {
    this.#limits = limits;
  }

  /**
   * Parses the bytes of connections in slices, and pauses a connection while too many of its
   * requests are queued. Node's parser cannot stop within a buffer, so its own listener gets small
   * slices. Checked with Node 24.
   */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const [listener] = socket.listeners('data') as ((bytes: Buffer) => void)[];
      if (listener === undefined) throw new Error('the HTTP server does not listen for data');
      socket.removeListener('data', listener);
      const connection: PipelinedConnection = {
        socket,
        parse: listener.bind(socket),
        isBusy: false,
        parsed: 0,
        last: null,
        waiting: [],
        unparsed: [],
        isParsing: false,
      };
      this.#connections.set(socket, connection);
      socket.on('data', (bytes: Buffer) => {
        connection.unparsed.push(bytes);
        this.#parse(connection);
      });
      socket.on('resume', () => this.#parse(connection));
      socket.once('close', () => this.#dropQueue(connection));
    });
    // After a rejected CONNECT nothing is parsed.
    server.on('connect', (_request, socket) => this.#connections.delete(socket as Socket));
  }

  /** Wraps a request handler, so that requests of a connection run one after another. */
  handler(handle: Handler): Handler {
    return (request, reply) => {
      const { socket } = request;
      const connection = this.#connections.get(socket);
      if (connection === undefined) return handle(request, reply);
      // Closed, or closing after an earlier reply.
      if (!socket.writable) return;
      connection.parsed += 1;
      connection.last = request;
      if (!connection.isBusy) {
        connection.isBusy = true;
        this.#begin(connection, handle, [request, reply]);
      } else if (
        connection.waiting.length >= this.#limits.waitingMax &&
        this.#waiting >= this.#limits.allMax
      ) {
        socket.destroy();
      } else {
        this.#waiting += 1;
        connection.waiting.push([request, reply]);
      }
    };
  }

  /**
   * Returns true if a request timed out because its connection was not read while earlier requests
   * were queued. The client then gets at least `graceMs` after that; `refuse` is called if the
   * request is still incomplete.
   */
  deferTimeout(socket: Duplex, refuse: () => void): boolean {
    const connection = this.#connections.get(socket as Socket);
    if (connection === undefined || !isQueued(connection)) return false;
    // The parser is in the body of the last request, or in the head of the next one.
    const late = connection.parsed + (hasPartBody(connection) ? 0 : 1);
    const hasArrived = (): boolean =>
      connection.parsed > late || (connection.parsed === late && !hasPartBody(connection));
    let isFree = false;
    const check = (): void => {
      if (socket.destroyed || hasArrived()) return;
      if (isFree) {
        refuse();
        return;
      }
      isFree = !isQueued(connection);
      setTimeout(check, this.#limits.graceMs).unref();
    };
    setTimeout(check, this.#limits.graceMs).unref();
    return true;
  }

  #parse(connection: PipelinedConnection): void {
    const { socket, parse, unparsed } = connection;
    if (connection.isParsing) return;
    connection.isParsing = true;
    const isFull = (): boolean => connection.waiting.length > this.#limits.waitingMax;
    // Node may have paused the connection and its parser too.
    while (unparsed.length > 0 && !isFull() && !socket.isPaused()) {
      const bytes = unparsed.shift() as Buffer;
      const size = connection.waiting.length === 0 ? SLICE_BYTES : PIPELINED_BYTES;
      if (bytes.length > size) unparsed.unshift(bytes.subarray(size));
      if (this.#connections.get(socket) !== connection || socket.destroyed) unparsed.length = 0;
      else parse(bytes.subarray(0, size));
    }
    connection.isParsing = false;
    if (unparsed.length > 0) socket.pause();
  }

  #begin(
    connection: PipelinedConnection,
    handle: Handler,
    [request, reply]: PipelinedRequest,
  ): void {
    reply.once('close', () => {
      // After Node has parsed the bytes that it already read.
      if (!request.complete) setImmediate(endUnread, request);
      if (connection.waiting.length === 0) connection.isBusy = false;
      // In a later event-loop turn, so that other connections are served in between.
      else setImmediate(() => this.#proceed(connection, handle));
    });
    handle(request, reply);
  }

  #proceed(connection: PipelinedConnection, handle: Handler): void {
    const { socket } = connection;
    const next = socket.writable ? connection.waiting.shift() : undefined;
    if (next === undefined) {
      this.#dropQueue(connection);
      return;
    }
    this.#waiting -= 1;
    this.#begin(connection, handle, next);
    const isRoom = connection.waiting.length <= this.#limits.waitingMax;
    if (isRoom && connection.unparsed.length > 0) socket.resume();
  }

  #dropQueue(connection: PipelinedConnection): void {
    this.#waiting -= connection.waiting.length;
    connection.waiting = [];
    connection.unparsed.length = 0;
  }
}

/** Delays the close of a connection whose client still sends, so that it can read the reply. */
export function delayClose(socket: Socket): void {
  socket.destroySoon = () => {
    if (isArriving(socket)) closeAfterWrite(socket);
    else Socket.prototype.destroySoon.call(socket);
  };
}
