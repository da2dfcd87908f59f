import fc from 'fast-check';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { listeningOn, type Service } from '../support/http/service.ts';
import { expectedAnswer, filterAnswer } from '../support/prices/filter-answers.ts';
import { type OraclePrice, readOracle } from '../support/prices/oracle.ts';
import { requestsOf } from '../support/prices/requests.ts';
import { SPECIFIED } from '../support/prices/specification.ts';
import { recordFigures } from '../support/run/faults.ts';

let service: Service;
let all: readonly OraclePrice[];

t.before(async () => {
  const database = await seededDatabase(t);
  service = await listeningOn(t, database);
  all = await readOracle(database.pool);
});

/** 17 markets × 38 runs × 8 requests at once are more than five thousand. */
const RUNS = 38;
const AT_ONCE = 8;

for (const market of SPECIFIED) {
  t.test(`${market.slug} answers any filters as a reading of the plain tables does`, async (t) => {
    let records = 0;
    const some = fc.array(requestsOf(all, market), { minLength: AT_ONCE, maxLength: AT_ONCE });
    await fc.assert(
      fc.asyncProperty(some, async (requests) => {
        const answers = await Promise.all(requests.map((each) => filterAnswer(service, each)));
        for (const [index, answer] of answers.entries()) {
          const right = expectedAnswer(all, requests[index] as (typeof requests)[number]);
          records += answer.codes.length;
          if (JSON.stringify(answer) === JSON.stringify(right)) continue;
          throw new Error(`${JSON.stringify(answer)}\nshould be\n${JSON.stringify(right)}`);
        }
      }),
      { numRuns: RUNS },
    );
    recordFigures('F26', { requests: RUNS * AT_ONCE, 'records in them': records });
    t.ok(records > RUNS * AT_ONCE, `${records} records in ${RUNS * AT_ONCE} answers`);
  });
}
