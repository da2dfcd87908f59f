import { createHash } from 'node:crypto';

/** The end of a page: its last code, and the revision of the first page. */
export interface PagePosition {
  /** In wire format. */
  readonly revision: string;
  readonly code: string;
}

const REVISION = /^[0-9a-z]{4,18}\.(0|[1-9]\d{0,17})$/;
const CODE = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

/** Maximum length of a cursor in characters. */
const LENGTH_MAX = 1_024;

/** Bytes of the checksum. It detects cursors of other requests and is no security measure. */
const SUM_BYTES = 12;

/** Encodes a page position of a request as a cursor. */
export const cursorText = (request: string, position: PagePosition): string => {
  const parts = [position.revision, position.code, sumOf(request, position)];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
};

/** Binds a position to a request, so that a cursor is valid only for that request. */
const sumOf = (request: string, { revision, code }: PagePosition): string =>
  createHash('sha256')
    .update(JSON.stringify(['cursor 1', request, revision, code]))
    .digest()
    .subarray(0, SUM_BYTES)
    .toString('base64url');

function partsOf(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return null;
  }
}

/**
 * Decodes a cursor. Returns null if it belongs to another request or was altered.
 * @param request the canonical text of the request
 */
export function pagePositionIn(request: string, text: string): PagePosition | null {
  const parts = text.length > LENGTH_MAX ? null : partsOf(text);
  if (!Array.isArray(parts)) return null;
  const [revision, code] = parts;
  if (typeof revision !== 'string' || !REVISION.test(revision)) return null;
  if (typeof code !== 'string' || !CODE.test(code)) return null;
  const position = { revision, code };
  return cursorText(request, position) === text ? position : null;
}
