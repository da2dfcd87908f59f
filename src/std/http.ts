import { setTimeout as pause } from 'node:timers/promises';

/** Statuses that pass: a limit, an overload, or a proxy that does not reach the service. */
const TRANSIENT: readonly number[] = [429, 502, 503, 504];

/** Maximum number of retries. */
const RETRIES = 3;

/** First wait without a `Retry-After`; each further wait is twice as long. */
const WAIT_MS = 500;

/** Adds up to half a second, so that clients refused at the same time do not return together. */
const withJitter = (waitMs: number): number => waitMs + Math.random() * Math.min(waitMs, WAIT_MS);

/** Milliseconds of `Retry-After`, which may be a date; NaN if it is missing or malformed. */
export function retryAfterMs({ headers }: Response): number {
  const text = headers.get('retry-after') ?? '';
  return Math.max(0, /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now());
}

/**
 * Sends a request, and repeats it after 429, 502, 503 and 504 as `Retry-After` says, unless the
 * wait would end after `dueMs` of `performance.now()`. Redirects are not followed, because they
 * would carry credentials to another address.
 * @returns the last response, whatever its status
 * @throws the errors of `fetch`
 */
export async function fetchWithRetries(
  url: string | URL,
  request: RequestInit & { readonly signal: AbortSignal },
  dueMs: number,
): Promise<Response> {
  for (let retries = 0; ; retries += 1) {
    const answer = await fetch(url, { redirect: 'manual', ...request });
    if (!TRANSIENT.includes(answer.status) || retries === RETRIES) return answer;
    const afterMs = retryAfterMs(answer);
    const waitMs = withJitter(Number.isNaN(afterMs) ? WAIT_MS * 2 ** retries : afterMs);
    if (performance.now() + waitMs >= dueMs) return answer;
    await answer.body?.cancel();
    await pause(waitMs, undefined, { signal: request.signal });
  }
}

/**
 * Reads a body into memory; null if it has more bytes.
 * @throws Error if the connection breaks
 */
export async function bytesOf(answer: Response, bytesMax: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer.body ?? []) {
    length += chunk.length;
    if (length > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
