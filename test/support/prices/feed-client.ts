import { faultOf } from '../http/conformity.ts';
import { changesOf, type WireChange } from './feed-oracle.ts';

/** The port of a service and a key. */
export interface Source {
  readonly port: number;
  readonly key: string;
}

/** An answer of the feed over a socket. */
export interface FeedAnswer {
  readonly status: number;
  readonly changes: readonly WireChange[];
  readonly next: string;
  readonly headers: Headers;
  readonly text: string;
  /** Latency in milliseconds. */
  readonly tookMs: number;
}

/** Requests changes as NDJSON; fails if the answer violates openapi.yaml. */
export async function fetchChanges(
  { port, key }: Source,
  query: string,
  signal: AbortSignal | null = null,
): Promise<FeedAnswer> {
  const startedAt = performance.now();
  const answer = await fetch(`http://127.0.0.1:${port}/v3/changes?${query}`, {
    headers: { 'x-api-key': key, accept: 'application/x-ndjson' },
    signal,
  });
  const { status, headers } = answer;
  const text = await answer.text();
  const fault = faultOf('GET', '/v3/changes', {
    statusCode: status,
    headers: Object.fromEntries(headers),
    body: text,
  });
  if (fault) throw new Error(fault);
  return {
    status,
    changes: status === 200 ? changesOf(text) : [],
    next: headers.get('x-next-seq') ?? '',
    headers,
    text,
    tookMs: performance.now() - startedAt,
  };
}
