import Type from 'typebox';
import {
  PROBLEMS,
  type Problem,
  type ProblemCode,
  VIOLATIONS,
  type Violation,
} from '../../errors.ts';
import { closed, POINTER, ref, word } from './components.ts';

/** A name as a part of a JSON pointer (RFC 6901, section 3). */
export const escapePointer = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1');

/** The part of a request with its filters and options. */
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

export const ViolationSchema = closed(
  {
    pointer: Type.String({ description: POINTER }),
    code: word(Object.keys(VIOLATIONS)),
    detail: Type.String({ description: 'What is wrong and what to do instead' }),
  },
  { $id: 'Violation' },
);

export const ProblemSchema = closed(
  {
    type: Type.String({ description: 'Address of the description of the code' }),
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: 'What went wrong and what to do instead' }),
    instance: Type.String({ description: 'Path that was asked for' }),
    code: word(Object.keys(PROBLEMS)),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(ref(ViolationSchema), {
        description:
          'Places of the request that break a rule; only with `validation_failed`, ' +
          '`unknown_revision` and `invalid_cursor`',
      }),
    ),
  },
  { $id: 'Problem', description: 'A refusal, as RFC 9457 has it. `code` is stable' },
);

/** Media type of every refusal. */
export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

const typeOf = (code: ProblemCode): string => `/docs/problems#${code}`;

/** Characters of what was sent that a refusal repeats at most. */
const ECHO_MAX = 64;

const inAddress = (violation: Violation): Violation => ({
  ...violation,
  pointer: parameterPointer(violation.pointer),
});

/**
 * The body of a refusal.
 * @param path the address asked for, without its query
 * @param part where the request has its filters: pointers name places there
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
