import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { hangUp, isArriving } from './refuse.ts';

export type Handler = (request: IncomingMessage, reply: ServerResponse) => void;

interface PipelineLimits {
  /** Requests of one connection that may wait; the connection is not read while more do. */
  readonly waitingMax: number;
  /**
   * Waiting requests of all connections. A connection with more than `waitingMax` beyond this
   * bound is closed.
   */
  readonly allMax: number;
  /** Time for a request that came too late while its connection was not read, in milliseconds. */
  readonly graceMs: number;
}

/** The most bytes of a connection that are parsed before its waiting requests are counted. */
const SLICE_BYTES = 4_096;

/**
 * The same while requests of the connection wait: each of the smallest requests, of 18 bytes, takes
 * about 10 KB of memory once it is parsed.
 */
const PIPELINED_BYTES = 512;

type Message = readonly [request: IncomingMessage, reply: ServerResponse];

/** A connection: its requests that are not answered yet, and bytes that are not parsed yet. */
interface Line {
  readonly socket: Socket;
  readonly parse: (bytes: Buffer) => void;
  isBusy: boolean;
  /** Requests that were parsed, their bodies aside, and the last of them. */
  parsed: number;
  last: IncomingMessage | null;
  waiting: Message[];
  unparsed: Buffer[];
  isParsing: boolean;
}

/** True while the body of the last request arrives. */
const hasPartBody = ({ last }: Line): boolean => last?.complete === false;

/** True if the arriving request of a connection waits for the answer to an earlier one. */
const isHeld = (line: Line): boolean =>
  hasPartBody(line) ? line.waiting.length > 0 : line.isBusy || line.unparsed.length > 0;

/** Closes a connection after an answer to a body that still arrives. */
function endUnread({ complete, socket }: IncomingMessage): void {
  if (!complete && socket.writable) socket.destroySoon();
}

/**
 * Answers the requests of a connection one after another: the next one begins once the answer
 * before it is out (pipelining, RFC 9112, section 9.3.2). Node alone would begin every request of
 * the 64 KiB that it reads at once, some 2,000, whether anybody reads the answers or not.
 */
export class Pipelines {
  readonly #lines = new WeakMap<Socket, Line>();
  readonly #limits: PipelineLimits;
  #all = 0;

  constructor(limits: PipelineLimits) {
    this.#limits = limits;
  }

  /**
   * Parses what connections send in slices, and stops reading a connection while too many of its
   * requests wait. Node's parser cannot be stopped within the bytes that it was given, so its own
   * listener gets them slice by slice. Tried with Node 24.
   */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const [listener] = socket.listeners('data') as ((bytes: Buffer) => void)[];
      if (listener === undefined) throw new Error('the HTTP server does not listen for data');
      socket.removeListener('data', listener);
      const line: Line = {
        socket,
        parse: listener.bind(socket),
        isBusy: false,
        parsed: 0,
        last: null,
        waiting: [],
        unparsed: [],
        isParsing: false,
      };
      this.#lines.set(socket, line);
      socket.on('data', (bytes: Buffer) => {
        line.unparsed.push(bytes);
        this.#parse(line);
      });
      socket.on('resume', () => this.#parse(line));
      socket.once('close', () => this.#forget(line));
    });
    // A refused CONNECT ends the parsing of its connection.
    server.on('connect', (_request, socket) => this.#lines.delete(socket as Socket));
  }

  /** A handler of requests that begins them in turn. */
  handler(handle: Handler): Handler {
    return (request, reply) => {
      const { socket } = request;
      const line = this.#lines.get(socket);
      if (line === undefined) return handle(request, reply);
      // It was closed, or will be once an answer before this one is out.
      if (!socket.writable) return;
      line.parsed += 1;
      line.last = request;
      if (!line.isBusy) {
        line.isBusy = true;
        this.#begin(line, handle, [request, reply]);
      } else if (
        line.waiting.length >= this.#limits.waitingMax &&
        this.#all >= this.#limits.allMax
      ) {
        socket.destroy();
      } else {
        this.#all += 1;
        line.waiting.push([request, reply]);
      }
    };
  }

  /**
   * True if a request is late because the service does not read its connection while earlier
   * requests on it wait. From the end of that on, the client has at least `graceMs`, and is then
   * refused by `refuse`.
   */
  excuses(socket: Duplex, refuse: () => void): boolean {
    const line = this.#lines.get(socket as Socket);
    if (line === undefined || !isHeld(line)) return false;
    // The parser is within the body of the last request, or within the head of the one after it.
    const late = line.parsed + (hasPartBody(line) ? 0 : 1);
    const hasArrived = (): boolean =>
      line.parsed > late || (line.parsed === late && !hasPartBody(line));
    let isFree = false;
    const look = (): void => {
      if (socket.destroyed || hasArrived()) return;
      if (isFree) {
        refuse();
        return;
      }
      isFree = !isHeld(line);
      setTimeout(look, this.#limits.graceMs).unref();
    };
    setTimeout(look, this.#limits.graceMs).unref();
    return true;
  }

  #parse(line: Line): void {
    const { socket, parse, unparsed } = line;
    if (line.isParsing) return;
    line.isParsing = true;
    const isFull = (): boolean => line.waiting.length > this.#limits.waitingMax;
    // Node pauses a connection as well, and its parser with it.
    while (unparsed.length > 0 && !isFull() && !socket.isPaused()) {
      const bytes = unparsed.shift() as Buffer;
      const size = line.waiting.length === 0 ? SLICE_BYTES : PIPELINED_BYTES;
      if (bytes.length > size) unparsed.unshift(bytes.subarray(size));
      if (this.#lines.get(socket) !== line || socket.destroyed) unparsed.length = 0;
      else parse(bytes.subarray(0, size));
    }
    line.isParsing = false;
    if (unparsed.length > 0) socket.pause();
  }

  #begin(line: Line, handle: Handler, [request, reply]: Message): void {
    reply.once('close', () => {
      // Once Node has parsed the bytes that it has.
      if (!request.complete) setImmediate(endUnread, request);
      if (line.waiting.length === 0) line.isBusy = false;
      // In a turn of the event loop of its own: other connections get theirs.
      else setImmediate(() => this.#proceed(line, handle));
    });
    handle(request, reply);
  }

  #proceed(line: Line, handle: Handler): void {
    const { socket } = line;
    const next = socket.writable ? line.waiting.shift() : undefined;
    if (next === undefined) {
      this.#forget(line);
      return;
    }
    this.#all -= 1;
    this.#begin(line, handle, next);
    const isRoom = line.waiting.length <= this.#limits.waitingMax;
    if (isRoom && line.unparsed.length > 0) socket.resume();
  }

  #forget(line: Line): void {
    this.#all -= line.waiting.length;
    line.waiting = [];
    line.unparsed.length = 0;
  }
}

/** Lets a client that still sends read its answer when the connection is closed after it. */
export function closeGently(socket: Socket): void {
  socket.destroySoon = () => {
    if (isArriving(socket)) hangUp(socket);
    else Socket.prototype.destroySoon.call(socket);
  };
}
