import type t from 'tap';
import type { Reply } from './service.ts';
import { serviceWithoutDatabase } from './service-without-database.ts';

export interface Violation {
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

/** Rejected bodies, each with the pointers and codes of its violations. */
export type Refused = Readonly<Record<string, readonly [body: unknown, ...places: string[]]>>;

export const violationsOf = ({ json }: Reply): Violation[] => json.errors;

/** Tests of bodies that nickel rejects without any SQL. */
export function bodyTests(tap: Pick<typeof t, 'test' | 'before' | 'teardown'>) {
  let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
  tap.before(async () => {
    service = await serviceWithoutDatabase(tap);
  });
  const refuses = (title: string, cases: Refused) =>
    tap.test(title, async (test) => {
      for (const [name, [body, ...places]] of Object.entries(cases)) {
        const answer = await service.post('nickel', body);
        test.equal(answer.status, 400, name);
        test.equal(answer.json.code, 'validation_failed', name);
        test.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8');
        test.equal(answer.headers['cache-control'], 'no-store');
        const found = violationsOf(answer).map(({ pointer, code }) => `${pointer} ${code}`);
        test.same(found.toSorted(), places.toSorted(), name);
      }
    });
  const post = (slug: string, body: unknown): Promise<Reply> => service.post(slug, body);
  return { refuses, post };
}
