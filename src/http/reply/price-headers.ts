import type { FastifyRequest } from 'fastify';
import { FORMATS, type Format } from '../../contract/schemas/formats.ts';
import type { Metadata } from '../../prices/answer/answer.ts';
import type { Warning } from '../../prices/answer/warnings.ts';
import { maskedEncoded } from '../../std/secrets.ts';

/**
 * The headers that describe an answer: type, revision, file name and next page. For a format
 * without `$metadata` they also have the first warnings, as many as fit, and the number of all
 * warnings.
 */
export function priceHeaders(
  { method, url }: FastifyRequest,
  { market, revision, asOf, nextCursor, warnings }: Metadata,
  format: Format,
): Record<string, string> {
  const { type, extension, disposition, hasMetadata } = FORMATS[format];
  const file = `${market}-${asOf.slice(0, 10)}.${extension}`;
  const headers: Record<string, string> = {
    'content-type': type,
    'x-data-revision': revision,
    'content-disposition': `${disposition}; filename="${file}"`,
  };
  if (nextCursor !== null) {
    headers['x-next-cursor'] = nextCursor;
    const next = nextPage(url, nextCursor);
    // Clients always have the cursor. An address with a secret is not repeated.
    const isSent = next.length <= LINK_MAX && maskedEncoded(next) === next;
    if (method !== 'POST' && isSent) headers['link'] = `<${next}>; rel="next"`;
  }
  if (hasMetadata) return headers;
  return { ...headers, ...warningsHeaders(warnings) };
}

/** The headers of warnings for a format without `$metadata`. */
export const warningsHeaders = (warnings: readonly Warning[]) => ({
  'x-warnings': warningsText(warnings),
  'x-warnings-count': String(warnings.length),
});

/** Maximum size of the warnings header: clients and proxies accept headers of about 8 KB. */
const WARNINGS_BYTES_MAX = 4_096;

/** JSON in ASCII, as required in headers. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The first warnings as JSON, as many as fit. */
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
 * Maximum length of the Link header. An address of `URL_BYTES_MAX` would exceed the limits for all
 * headers of an answer, beyond which a proxy sends 502 instead: nginx has 4 or 8 KB by default.
 */
const LINK_MAX = 4_096;

/** The relative address of the next page, because a proxy may have changed the path. */
function nextPage(url: string, cursor: string): string {
  // A value may contain question marks.
  const [, text = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const query = new URLSearchParams(text);
  query.set('cursor', cursor);
  return `?${query}`;
}
