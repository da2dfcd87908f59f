import t from 'tap';
import { MARKETS, type Market } from '../../src/catalog/markets.ts';
import { nativePoints } from '../../src/conversion/columns.ts';
import { selectionOf } from '../../src/prices/market/query.ts';
import { referenceReader } from '../../src/prices/market/references.ts';
import { planOf } from '../../src/prices/plan/plan.ts';
import { sqlSeries } from '../../src/prices/series/from-sql.ts';
import { currencyAndUnitOf, membersOf } from '../../src/prices/write/record.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { listeningOn, type Service } from '../support/http/service.ts';
import { overSocket } from '../support/http/socket-request.ts';
import { pointsText } from '../support/prices/points-text.ts';
import { recordFigures } from '../support/run/faults.ts';

const FROM = '2026-03-01';
const COBALT = MARKETS.find((each) => each.slug === 'cobalt') as Market;
const OF_COBALT = "market_id = (select id from market where slug = 'cobalt')";

/** One commit that leaves its mark on every point, price, product, purity, unit and currency. */
const mark = ({ pool }: TestDatabase, number: number): Promise<number> =>
  inRevision(
    pool,
    `update series set mid = ${number}, low = null, high = null, corrections = ${number}
       where date >= '${FROM}' and price_id in (select id from price where ${OF_COBALT})`,
    `update price set name = 'Mark ${number}', short_name = 'Mark ${number}' where ${OF_COBALT}`,
    `update product set alias = 'Mark ${number}' where ${OF_COBALT}`,
    `update dimension_value set name = 'Mark ${number}' where kind = 'price-category'
       and id = (select min(price_category_id) from price where ${OF_COBALT})`,
    `update unit_of_measure set symbol = 'Mark ${number}'`,
    `update currency set symbol = 'Mark ${number}'`,
  );

interface MarkedAnswer {
  readonly text: string;
  readonly revision: number;
  readonly count: number;
  /** Every mark in the answer. */
  readonly marks: ReadonlySet<number>;
}

async function ask({ app, key }: Service): Promise<MarkedAnswer> {
  const reply = await overSocket(app, {
    method: 'POST',
    url: '/v3/prices/cobalt',
    headers: { 'x-api-key': key },
    payload: { filters: { dateFrom: FROM }, options: { includeSeries: true } },
  });
  const { $metadata, data } = reply.json();
  const marks = [...reply.body.matchAll(/Mark (\d+)|"corrections":(\d+)|"mid":(\d+),/g)];
  return {
    text: reply.body,
    revision: Number($metadata.revision.split('.')[1]),
    count: data.length,
    marks: new Set(marks.map((each) => Number(each[1] ?? each[2] ?? each[3]))),
  };
}

const COMMITS = 25;
const READERS = 4;

interface Contention {
  /** Revision → mark, as the writer knows it. */
  readonly committed: ReadonlyMap<number, number>;
  /** The answer of all readers, by revision. */
  readonly answers: ReadonlyMap<number, MarkedAnswer>;
  readonly requests: number;
}

/** Commits in a loop while readers send requests all the time. */
async function contend(
  test: Pick<typeof t, 'ok'>,
  database: TestDatabase,
  service: Service,
): Promise<Contention> {
  const committed = new Map([[await mark(database, 0), 0]]);
  const answers = new Map<number, MarkedAnswer>();
  let newest = Math.max(...committed.keys());
  let isWriting = true;
  let requests = 0;
  const read = async () => {
    while (isWriting) {
      const before = newest;
      const answer = await ask(service);
      requests += 1;
      test.ok(answer.revision >= before, 'an answer is as new as the last commit before it');
      const known = answers.get(answer.revision);
      test.ok(!known || known.text === answer.text, 'and one for all who read its revision');
      answers.set(answer.revision, answer);
    }
  };
  const write = async () => {
    for (let number = 1; number <= COMMITS || answers.size <= 5; number += 1) {
      newest = await mark(database, number);
      committed.set(newest, number);
    }
    isWriting = false;
  };
  await Promise.all([write(), ...Array.from({ length: READERS }, read)]);
  return { committed, answers, requests };
}

/** The records of a past revision, put together from the parts that an answer is made of. */
async function recordsAt({ db, client }: TestDatabase, revision: number): Promise<string> {
  const at = String(revision);
  const plan = planOf(COBALT, () => [], { filters: { dateFrom: FROM } });
  const prices = await selectionOf(db, plan, at).execute();
  const references = await referenceReader(1)(db, { epoch: 'any', reference: at });
  const ids = prices.map((each) => each.id);
  const series = await sqlSeries(client.reads)(
    ids,
    { days: plan.days, last: null },
    at,
    new AbortController().signal,
  );
  const records = prices.map((price) => {
    const columns = series.get(price.id);
    const points = columns ? pointsText(nativePoints(columns)).toString() : '';
    const members = membersOf(COBALT, price, references, currencyAndUnitOf(price, references));
    return `${JSON.stringify(members).slice(0, -1)},"series":[${points}]}`;
  });
  return `[${records.join(',')}]`;
}

for (const pricesPerStatement of [1, 20]) {
  const title = `${pricesPerStatement} prices per statement`;
  t.test(
    `an answer is one snapshot of the data, whatever is committed meanwhile: ${title}`,
    async (t) => {
      const database = await testDatabase(t, { seeded: true });
      const env = { SERIES_PRICES_PER_STATEMENT: pricesPerStatement };
      const service = await listeningOn(t, database, env);
      const { committed, answers, requests } = await contend(t, database, service);
      recordFigures('F41', { answers: requests, 'at revisions': answers.size });
      t.ok(
        answers.size > 5 && requests > answers.size,
        `${requests} answers at ${answers.size} revisions`,
      );
      for (const [revision, { marks, count, text }] of answers) {
        const expected = committed.get(revision);
        t.same([...marks], [expected], `revision ${revision} shows nothing but its own mark`);
        t.ok(count > 10 && text.includes('"mid"'));
      }
      for (const [revision, { text }] of answers) {
        const data = text.slice(text.indexOf('"data":') + 7, -1);
        t.ok(
          (await recordsAt(database, revision)) === data,
          `revision ${revision} reads as it was`,
        );
      }
    },
  );
}
