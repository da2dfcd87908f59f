import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { VERSION } from '../std/program.ts';
import { type AllowedNetworks, checkLiteral, guardedLookup, isPlainText } from './receiver.ts';

/** Longest time until the status of a receiver, in milliseconds. */
const ANSWER_MS_MAX = 15_000;

/** A message that is ready to be sent. */
interface Envelope {
  /** The same at each attempt. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  /** One, or two during a rotation. */
  readonly secrets: readonly string[];
}

/** The result of an attempt. */
export interface Answer {
  /** Null if no status was received. */
  readonly status: number | null;
  /** The status or the error, for an operator. */
  readonly text: string;
  readonly retryAfter: string | undefined;
}

interface SendOptions {
  readonly networks: AllowedNetworks;
  /** The lookup of the system, unless a test gives another. */
  readonly lookUp?: LookupFunction | undefined;
  /** Time of the attempt, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** The headers of Standard Webhooks 1.0.0, with a signature of each secret. */
function headersOf({ id, body, secrets }: Envelope, nowMs: number): Record<string, string> {
  const at = new Date(nowMs);
  return {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': `commodity-prices/${VERSION}`,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(nowMs / 1_000)),
    'webhook-signature': secrets.map((each) => new Webhook(each).sign(id, at, body)).join(' '),
  };
}

/**
 * Sends a request and waits for the head of the answer, whose body is not read. A connection that
 * the receiver upgrades (101) is closed without a response or an error.
 */
function answerTo(request: ClientRequest, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('close', () => reject(new Error('the connection ended without an answer')));
    request.on('response', (response) => {
      resolve(response);
      response.destroy();
    });
    request.end(body);
  });
}

/** Describes an error of a connection in a few words, without the address. */
function errorText(error: unknown, timeout: AbortSignal): string {
  if (timeout.aborted) return `no answer within ${ANSWER_MS_MAX / 1_000} s`;
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message.split('\n', 1)[0] ?? 'error';
}

/**
 * Sends a message once. A redirect is an answer like any other, and is not followed. Each attempt
 * has a connection of its own, whose address is checked.
 */
export async function send(envelope: Envelope, options: SendOptions): Promise<Answer> {
  const { networks, lookUp, nowMs, signal } = options;
  const url = new URL(envelope.url);
  const isPlain = isPlainText(url);
  const timeout = AbortSignal.timeout(ANSWER_MS_MAX);
  try {
    checkLiteral(url, networks);
    const request = (isPlain ? requestPlain : requestTls)(url, {
      method: 'POST',
      headers: headersOf(envelope, nowMs),
      // A kept connection would be used without a lookup.
      agent: false,
      lookup: guardedLookup(networks, isPlain, lookUp),
      signal: AbortSignal.any([timeout, signal]),
    });
    const { statusCode = 0, headers } = await answerTo(request, envelope.body);
    return { status: statusCode, text: String(statusCode), retryAfter: headers['retry-after'] };
  } catch (error) {
    signal.throwIfAborted();
    return { status: null, text: errorText(error, timeout), retryAfter: undefined };
  }
}
