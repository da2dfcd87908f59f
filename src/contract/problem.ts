import Type from 'typebox';
import { PROBLEMS, type Problem, type ProblemCode, VIOLATIONS } from '../errors.ts';
import { closed, ref, word } from './components.ts';

export const ViolationSchema = closed(
  {
    pointer: Type.String({ description: 'JSON pointer into the request' }),
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

/** The body of a refusal. `path` is the address asked for, without its query. */
export const problemBody = (problem: Problem, path: string, requestId: string): string =>
  JSON.stringify({
    type: typeOf(problem.code),
    title: PROBLEMS[problem.code][1],
    status: problem.statusCode,
    detail: problem.message,
    instance: path.slice(0, ECHO_MAX),
    code: problem.code,
    requestId,
    ...(problem.errors ? { errors: problem.errors } : {}),
  });
