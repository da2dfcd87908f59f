import { createHash } from 'node:crypto';

/** Where a walk over pages goes on: after a code, at the state at which it began. */
export interface Position {
  /** As on the wire. */
  readonly revision: string;
  readonly code: string;
}

const REVISION = /^[0-9a-z]{4,18}\.(0|[1-9]\d{0,17})$/;
const CODE = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

/** Longest cursor that is looked into, in characters. */
const LENGTH_MAX = 1_024;

/** Bytes of the checksum; it keeps walks apart and guards nothing. */
const SUM_BYTES = 12;

/** Binds a position to a request, so that a cursor goes on with what it was given for. */
const sumOf = (request: string, { revision, code }: Position): string =>
  createHash('sha256')
    .update(JSON.stringify(['cursor 1', request, revision, code]))
    .digest()
    .subarray(0, SUM_BYTES)
    .toString('base64url');

/** A position in the answer to a request, as text. */
export const cursorText = (request: string, position: Position): string => {
  const parts = [position.revision, position.code, sumOf(request, position)];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
};

function partsOf(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return null;
  }
}

/**
 * The position that a cursor names; null when it was not given for this request, as it is then
 * that of another, or was changed.
 * @param request the canonical text of the request that it came with
 */
export function positionIn(request: string, text: string): Position | null {
  const parts = text.length > LENGTH_MAX ? null : partsOf(text);
  if (!Array.isArray(parts)) return null;
  const [revision, code] = parts;
  if (typeof revision !== 'string' || !REVISION.test(revision)) return null;
  if (typeof code !== 'string' || !CODE.test(code)) return null;
  const position = { revision, code };
  return cursorText(request, position) === text ? position : null;
}
