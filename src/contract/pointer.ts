/** A name as a part of a JSON pointer (RFC 6901, section 3). */
export const escapePointer = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1');

/** What holds the filters and options of a request. */
export type RequestPart = 'body' | 'address';

/**
 * The place in an address that stands for a place in a body: its parameter, after a question mark,
 * and the number of the value of a list, counted from 0. `/filters/regions/1` → `?regions/1`.
 */
export function parameterPointer(pointer: string): string {
  if (!pointer.startsWith('/')) return pointer;
  const [, name = '', at] = /^\/(?:(?:filters|options)\/)?([^/]*)(\/\d+)?/.exec(pointer) ?? [];
  return `?${name}${at ?? ''}`;
}
