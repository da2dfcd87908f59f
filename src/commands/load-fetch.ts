import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isZip } from '../ingest/zip.ts';
import { DownloadError, download } from './download.ts';
import { readConfig } from './environment.ts';

/** What the CSV and the XML of the ECB begin with. */
const BEGINNING = /^\ufeff?\s*(Date,|<\?xml|<gesmes:)/;

/** The name under which a load notes a file, which is that of the address. */
const nameIn = (url: string): string =>
  /[^/]+$/.exec(new URL(url).pathname)?.[0].replace(/[^\w.-]/g, '_') ?? 'download';

/** A folder that goes when the process ends, also by a signal. */
function passingFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'commodity-prices-fetch-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Downloads the file of the ECB that the settings name. Nothing is left on the disk unless all of
 * it has come and looks like a file of rates. Returns the path of a file that goes with the
 * process.
 * @throws DownloadError
 */
export async function fetchEcb(): Promise<string> {
  const { ECB_URL, FETCH_TIMEOUT_MS, FETCH_BYTES_MAX } = readConfig();
  const bytes = await download({
    setting: 'ECB_URL',
    url: ECB_URL,
    timeoutMs: FETCH_TIMEOUT_MS,
    bytesMax: FETCH_BYTES_MAX,
  });
  if (!isZip(bytes) && !BEGINNING.test(bytes.toString('utf8', 0, 64))) {
    const { origin, pathname } = new URL(ECB_URL);
    throw new DownloadError(`ECB_URL: what ${origin}${pathname} sends is no file of rates`);
  }
  const path = join(passingFolder(), nameIn(ECB_URL));
  await writeFile(path, bytes);
  return path;
}
