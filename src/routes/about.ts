import type { Format } from '../contract/formats.ts';
import type { Metadata } from '../prices/answer.ts';
import type { Warning } from '../prices/warnings.ts';

/** Bytes of warnings that a header holds: clients and proxies take headers of some 8 KB. */
const WARNINGS_BYTES_MAX = 4_096;

/** JSON in ASCII, as headers need it. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The first warnings, as many as fit, as JSON. */
function warningsText(warnings: readonly Warning[]): string {
  const texts: string[] = [];
  let bytes = 2;
  for (const warning of warnings) {
    const text = asciiJson(warning);
    bytes += text.length + 1;
    if (bytes > WARNINGS_BYTES_MAX) break;
    texts.push(text);
  }
  return `[${texts.join(',')}]`;
}

/**
 * The headers that say what an answer is of. A format without `$metadata` has its cursor and its
 * warnings there too, and how many warnings there are, as only so many fit.
 */
export function headersAbout(metadata: Metadata, format: Format): Record<string, string> {
  const { revision, nextCursor, warnings } = metadata;
  const headers: Record<string, string> = { 'x-data-revision': revision };
  if (format === 'json') return headers;
  headers['x-warnings'] = warningsText(warnings);
  headers['x-warnings-count'] = String(warnings.length);
  if (nextCursor !== null) headers['x-next-cursor'] = nextCursor;
  return headers;
}
