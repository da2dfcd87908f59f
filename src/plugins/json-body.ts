import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SentBody } from '../contract/validate.ts';
import { Problem } from '../errors.ts';
import { turn } from '../turns.ts';
import { BodyBytes } from './body-bytes.ts';

const BOM = 0xfeff;

/**
 * Finds what JSON.parse would pass over in silence: a member named twice in one object, of which
 * the last would win and drop a filter, and nesting beyond a limit.
 * @returns a sentence that tells what is wrong, or null
 */
function hiddenFault(text: string, depthMax: number): string | null {
  const open: (Set<string> | null)[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at];
    if (char === '{' || char === '[') {
      open.push(char === '{' ? new Set() : null);
      if (open.length > depthMax) return `The body is nested deeper than ${depthMax} levels`;
    } else if (char === '}' || char === ']') {
      open.pop();
    } else if (char === '"') {
      const end = endOfString(text, at);
      const names = open.at(-1);
      if (names && isBeforeColon(text, end)) {
        const name = nameOf(text.slice(at, end));
        if (names.has(name)) return 'The body names one member twice; name each once';
        names.add(name);
      }
      at = end;
      continue;
    }
    at += 1;
  }
  return null;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

const WHITE = ' \t\n\r';

/** Whether a string that ends at `end` is the name of a member. */
function isBeforeColon(text: string, end: number): boolean {
  let at = end;
  while (at < text.length && WHITE.includes(text[at] as string)) at += 1;
  return text[at] === ':';
}

/** Two spellings of one name, such as `a` and `\u0061`, are the same member. */
function nameOf(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}

const malformed = (detail: string): Problem => new Problem('malformed_json', detail);
const empty = (): Problem => malformed('The body is empty; send at least {}');

/** Bytes → value. @throws Problem `malformed_json` with what is wrong */
function parseJson(bytes: Buffer, depthMax: number): unknown {
  if (bytes.length === 0) throw empty();
  // Decoding would replace broken sequences in silence.
  if (!isUtf8(bytes)) throw malformed('The body is not valid UTF-8');
  const text = bytes.toString('utf8');
  if (text.charCodeAt(0) === BOM) {
    throw malformed('The body begins with a byte-order mark; leave it out');
  }
  const fault = hiddenFault(text, depthMax);
  if (fault) throw malformed(fault);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformed('The body is not valid JSON');
  }
}

/** Bodies beyond so many bytes are parsed in a turn of the event loop of their own. */
const LONG_BYTES = 16_384;

/** Refuses what would be read as something else than it says. */
function checkMediaType(request: FastifyRequest): void {
  const type = request.headers['content-type'] ?? '';
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(type)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new Problem('unsupported_media_type', 'Send the body as application/json in UTF-8');
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Problem('unsupported_media_type', 'Send the body uncompressed');
  }
}

interface BodyOptions {
  readonly depthMax: number;
  readonly bytesMax: number;
}

/**
 * Accepts `application/json` alone as a request body, which routes get as a `SentBody`: an answer
 * that is cached is found by its bytes.
 */
export function jsonBody(app: FastifyInstance, { depthMax, bytesMax }: BodyOptions): void {
  app.removeAllContentTypeParsers();
  // Without Content-Type an empty body reaches no parser.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.body === undefined && request.routeOptions.schema?.body) throw empty();
    done();
  });
  app.addContentTypeParser('application/json', (request, payload, done): void => {
    const body = request.bodyBytes ?? new BodyBytes(payload, bytesMax);
    const finish = (failure: Error | null, bytes: Buffer): void => {
      try {
        if (failure !== null) throw failure;
        checkMediaType(request);
        const sent: SentBody = { bytes, parse: () => parseJson(bytes, depthMax) };
        done(null, sent);
      } catch (error) {
        done(error as Error);
      }
    };
    body.whenOver((failure, bytes) => {
      // A long body takes milliseconds to parse and to check: one in each turn.
      if (bytes.length > LONG_BYTES) void turn().then(() => finish(failure, bytes));
      else finish(failure, bytes);
    });
  });
}
