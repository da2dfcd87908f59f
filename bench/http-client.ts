import type { IncomingHttpHeaders } from 'node:http';

/** One request, the same every time it is sent unless `next` says otherwise. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The status of its answers, 200 by default. */
  readonly status?: number;
  /** Returns the body of the next request. */
  readonly next?: () => string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  /** Milliseconds to the first byte of the body, and to the last. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly body: Buffer | null;
}

/** A keep-alive client of one server with so many connections. */
export interface HttpDriver {
  send(ask: HttpRequest, keepBody?: boolean): Promise<HttpAnswer>;
  close(): void;
}

/** The used part of undici's API; it is installed with the peers. */
interface Undici {
  readonly Pool: new (
    address: string,
    options: Readonly<Record<string, number>>,
  ) => {
    dispatch(request: Readonly<Record<string, unknown>>, handler: ResponseHandler): void;
    destroy(): Promise<void>;
  };
}

/** The callbacks of one answer. */
interface ResponseHandler {
  onRequestStart(): void;
  onResponseStart(controller: unknown, status: number, headers: IncomingHttpHeaders): void;
  onResponseData(controller: unknown, chunk: Buffer): void;
  onResponseEnd(): void;
  onResponseError(controller: unknown, error: Error): void;
}

// A variable name: type checks must pass without the bench packages.
const UNDICI: string = 'undici';
const { Pool } = (await import(UNDICI)) as Undici;

/** Makes a driver; undici leaves more CPU to the measured server than node:http. */
export function driverOf(address: string, connections: number): HttpDriver {
  const pool = new Pool(address, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const send = (ask: HttpRequest, keepBody = false): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const { method, path, headers } = ask;
      const body = (ask.next?.() ?? ask.body) || null;
      const began = performance.now();
      let about = { status: 0, headers: {} as IncomingHttpHeaders };
      let bytes = 0;
      let firstMs = 0;
      const kept: Buffer[] = [];
      pool.dispatch(
        { method, path, headers, body },
        {
          onRequestStart: () => {},
          onResponseStart: (_, status, fields) => {
            about = { status, headers: fields };
          },
          onResponseData: (_, chunk) => {
            if (bytes === 0) firstMs = performance.now() - began;
            bytes += chunk.length;
            if (keepBody) kept.push(chunk);
          },
          onResponseEnd: () => {
            const lastMs = performance.now() - began;
            const whole = keepBody ? Buffer.concat(kept) : null;
            resolve({ ...about, bytes, firstMs: firstMs || lastMs, lastMs, body: whole });
          },
          onResponseError: (_, error) => reject(error),
        },
      );
    });
  return { send, close: () => void pool.destroy() };
}

/** The client's measurements of a burst. */
export interface Burst {
  readonly requests: number;
  readonly seconds: number;
  readonly latenciesMs: readonly number[];
  readonly firstMs: readonly number[];
}

/**
 * Sends the same request over every connection, each as soon as the one before is answered, until
 * the time is over; at least `least` requests.
 * @throws when an answer has another status than expected
 */
export async function burst(
  driver: HttpDriver,
  ask: HttpRequest,
  connections: number,
  { ms, least, status }: { readonly ms: number; readonly least: number; readonly status: number },
): Promise<Burst> {
  const latenciesMs: number[] = [];
  const firstMs: number[] = [];
  const began = performance.now();
  let sent = 0;
  const loop = async (): Promise<void> => {
    while (performance.now() - began < ms || sent < least) {
      sent += 1;
      const answered = await driver.send(ask);
      if (answered.status !== status) throw new Error(`${ask.path} answered ${answered.status}`);
      latenciesMs.push(answered.lastMs);
      firstMs.push(answered.firstMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  const seconds = (performance.now() - began) / 1000;
  return { requests: latenciesMs.length, seconds, latenciesMs, firstMs };
}

/** The value that a share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
