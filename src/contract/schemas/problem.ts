import Type from 'typebox';
import {
  PROBLEMS,
  type Problem,
  type ProblemCode,
  VIOLATIONS,
  type Violation,
} from '../../errors.ts';
import { open, openWord, POINTER, ref } from './components.ts';

/** Escapes a name for a JSON pointer (RFC 6901, section 3). */
export const escapePointer = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1');

/** The part of a request that holds its filters and options. */
export type RequestPart = 'body' | 'address';

/**
 * Converts a pointer into a body to a pointer into an address: a question mark, the parameter, and
 * the zero-based index of a list value. `/filters/regions/1` → `?regions/1`.
 */
export function parameterPointer(pointer: string): string {
  if (!pointer.startsWith('/')) return pointer;
  const [, name = '', at] = /^\/(?:(?:filters|options)\/)?([^/]*)(\/\d+)?/.exec(pointer) ?? [];
  return `?${name}${at ?? ''}`;
}

export const ViolationSchema = open(
  {
    pointer: Type.String({ description: POINTER }),
    code: openWord(Object.keys(VIOLATIONS)),
    detail: Type.String({ description: 'The error and how to fix it' }),
  },
  { $id: 'Violation' },
);

export const ProblemSchema = open(
  {
    type: Type.String({ description: 'Address of the description of the code' }),
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: 'The error and how to fix it' }),
    instance: Type.String({ description: 'Requested path' }),
    code: openWord(Object.keys(PROBLEMS)),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(ref(ViolationSchema), {
        description:
          'Places of the request that break a rule; only with `validation_failed`, ' +
          '`unknown_revision` and `invalid_cursor`',
      }),
    ),
  },
  { $id: 'Problem', description: 'An error response of RFC 9457. `code` is stable' },
);

/** Media type of every error response. */
export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

const typeOf = (code: ProblemCode): string => `/docs/problems#${code}`;

/** Maximum number of characters of the request path in an error response. */
const ECHO_MAX = 64;

const inAddress = (violation: Violation): Violation => ({
  ...violation,
  pointer: parameterPointer(violation.pointer),
});

/**
 * The body of an error response.
 * @param path the requested address without its query
 * @param part the part of the request that pointers refer to
 */
export const problemBody = (
  problem: Problem,
  path: string,
  requestId: string,
  part: RequestPart = 'body',
): string =>
  JSON.stringify({
    type: typeOf(problem.code),
    title: PROBLEMS[problem.code][1],
    status: problem.statusCode,
    detail: problem.message,
    instance: path.slice(0, ECHO_MAX),
    code: problem.code,
    requestId,
    ...(problem.errors
      ? { errors: part === 'body' ? problem.errors : problem.errors.map(inAddress) }
      : {}),
  });
