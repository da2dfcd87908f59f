import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isZip } from '../../ingest/parsing/zip.ts';
import { readCommandConfig } from '../../process/environment.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { bytesOf, fetchWithRetries } from '../../std/http.ts';

/** A failed download. The message is one line with the setting and the reason. */
export class DownloadError extends ExpectedError {
  override readonly name = 'DownloadError';
  override readonly exitCode = EXIT.failed;
}

/** The file of the ECB has 600 kB. */
const BYTES_MAX = 16_777_216;
const TIMEOUT_MS = 60_000;
const REDIRECTS_MAX = 3;
const REDIRECTING = [301, 302, 303, 307, 308];

/** An address for messages, without its query, which may contain a secret. */
const shown = ({ origin, pathname }: URL): string => `${origin}${pathname}`;

/** The target of a redirect. @throws Error for a target without https on another origin */
function nextOf(from: URL, location: string | null): URL {
  const to = location === null ? null : URL.parse(location, from.href);
  if (to === null) throw new Error('it redirects to nowhere');
  // A server on this machine may redirect to its own origin without https.
  if (to.protocol === 'https:' || to.origin === from.origin) return to;
  throw new Error(`it redirects to ${shown(to)}, which is not https`);
}

/** @throws Error for another status, too many bytes or a broken connection */
async function follow(start: URL, bytesMax: number, timeoutMs: number): Promise<Buffer> {
  const dueMs = performance.now() + timeoutMs;
  // A compressed response would be larger than its Content-Length.
  const headers = { 'accept-encoding': 'identity', 'user-agent': 'commodity-prices' };
  const request = { headers, signal: AbortSignal.timeout(timeoutMs) };
  let url = start;
  for (let redirects = 0; ; redirects += 1) {
    const answer = await fetchWithRetries(url, request, dueMs);
    if (answer.status === 200) {
      const bytes = await bytesOf(answer, bytesMax);
      if (bytes !== null) return bytes;
      throw new Error(`it sends more than ${bytesMax} bytes`);
    }
    await answer.body?.cancel();
    if (!REDIRECTING.includes(answer.status)) {
      throw new Error(`it answers ${answer.status} ${answer.statusText}`.trim());
    }
    if (redirects === REDIRECTS_MAX)
      throw new Error(`it redirects more than ${REDIRECTS_MAX} times`);
    url = nextOf(url, answer.headers.get('location'));
  }
}

/** The reason of a failed download; `fetch` has it in `cause`. */
function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, message, cause } = error as Error;
  if (name === 'TimeoutError') return `it takes longer than ${timeoutMs} ms`;
  if (!(cause instanceof Error))
    return message === 'terminated' ? 'the connection is cut' : message;
  const [first] = (cause as AggregateError).errors ?? [];
  return cause.message || first?.message || message;
}

/**
 * Downloads the file of ECB_URL into memory, whole or not at all.
 * @param timeoutMs total time, including redirects
 * @throws DownloadError
 */
export async function download(
  url: string,
  timeoutMs = TIMEOUT_MS,
  bytesMax = BYTES_MAX,
): Promise<Buffer> {
  const start = new URL(url);
  try {
    return await follow(start, bytesMax, timeoutMs);
  } catch (error) {
    const reason = reasonOf(error, timeoutMs);
    throw new DownloadError(`ECB_URL: cannot download ${shown(start)}: ${reason}`);
  }
}

/** The first bytes of the ECB's CSV and XML. */
const BEGINNING = /^\ufeff?\s*(Date,|<\?xml|<gesmes:)/;

/** The file name in the ledger, from the address. */
const nameIn = (url: string): string =>
  /[^/]+$/.exec(new URL(url).pathname)?.[0].replace(/[^\w.-]/g, '_') ?? 'download';

/** Creates a folder that is removed when the process exits. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'commodity-prices-fetch-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Downloads the ECB file of ECB_URL, and checks that it looks like a file of rates. Returns the
 * path of a temporary file, which is removed when the process exits.
 * @throws DownloadError
 */
export async function fetchEcb(): Promise<string> {
  const { ECB_URL } = readCommandConfig();
  const bytes = await download(ECB_URL);
  if (!isZip(bytes) && !BEGINNING.test(bytes.toString('utf8', 0, 64))) {
    const where = shown(new URL(ECB_URL));
    throw new DownloadError(`ECB_URL: what ${where} sends is no file of rates`);
  }
  const path = join(temporaryFolder(), nameIn(ECB_URL));
  await writeFile(path, bytes);
  return path;
}
