import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { hangUp, isArriving } from './refuse.ts';

export type Handler = (request: IncomingMessage, reply: ServerResponse) => void;

export interface PipelineLimits {
  /** Requests of one connection that may wait; the connection is not read while more do. */
  readonly waitingMax: number;
  /**
   * Waiting requests of all connections. Node parses what it has read to its end, some 2,000
   * requests: a connection that brings more than `waitingMax` beyond this bound is closed.
   */
  readonly allMax: number;
}

/** Closes a connection after an answer to a body that still arrives. */
function endUnread({ complete, socket }: IncomingMessage): void {
  if (!complete && socket.writable) socket.destroySoon();
}

type Message = readonly [request: IncomingMessage, reply: ServerResponse];

/** The requests of a connection that are not answered yet. */
interface Line {
  isBusy: boolean;
  waiting: Message[];
}

/** Node stops to read a connection whose answers take so many bytes that nobody reads. */
interface Counted {
  /** Adds to these bytes: the answer of a waiting request is still to come. */
  _onPendingData(bytes: number): void;
}

/**
 * A handler that begins the requests of a connection one after another: the next one begins once
 * the answer before it is out (pipelining, RFC 9112, section 9.3.2). Node would begin all that it
 * has read, whether anybody reads the answers or not.
 */
export function inTurn(handle: Handler, { waitingMax, allMax }: PipelineLimits): Handler {
  const lines = new WeakMap<Socket, Line>();
  let all = 0;
  const shareOf = (socket: Socket): number => Math.ceil(socket.writableHighWaterMark / waitingMax);

  const begin = (line: Line, [request, reply]: Message): void => {
    reply.once('close', () => {
      // Once Node has parsed the bytes that it has.
      if (!request.complete) setImmediate(endUnread, request);
      if (line.waiting.length === 0) line.isBusy = false;
      // In a turn of the event loop of its own: other connections get theirs.
      else setImmediate(proceed, line, request.socket);
    });
    handle(request, reply);
  };

  const proceed = (line: Line, socket: Socket): void => {
    const next = socket.writable ? line.waiting.shift() : undefined;
    if (next) {
      all -= 1;
      (next[1] as unknown as Counted)._onPendingData(-shareOf(socket));
      begin(line, next);
    } else {
      all -= line.waiting.length;
      line.waiting = [];
    }
  };

  return (request, reply) => {
    const { socket } = request;
    const line = lines.get(socket) ?? { isBusy: false, waiting: [] };
    lines.set(socket, line);
    // It was closed, or will be once an answer before this one is out.
    if (!socket.writable) return;
    if (!line.isBusy) {
      line.isBusy = true;
      begin(line, [request, reply]);
    } else if (line.waiting.length >= waitingMax && all >= allMax) {
      socket.destroy();
    } else {
      all += 1;
      line.waiting.push([request, reply]);
      (reply as unknown as Counted)._onPendingData(shareOf(socket));
    }
  };
}

/** Lets a client that still sends read its answer when the connection is closed after it. */
export function closeGently(socket: Socket): void {
  socket.destroySoon = () => {
    if (isArriving(socket)) hangUp(socket);
    else Socket.prototype.destroySoon.call(socket);
  };
}
