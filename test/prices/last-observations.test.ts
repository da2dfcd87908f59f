import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { parseExact } from '../support/prices/oracle.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';

const CODE = 'CP-NI-0001';
const CONVERTED = { currency: 'EUR', unitOfMeasure: 'lb', includeSummary: true };

interface Listed {
  readonly code: string;
  readonly conversion?: { readonly status: string };
  readonly series: readonly { readonly date: string }[];
}

interface PageReply {
  readonly $metadata: {
    readonly revision: string;
    readonly asOf: string;
    readonly nextCursor: string | null;
  };
  readonly data: readonly Listed[];
}

let database: TestDatabase;
/** The service with the price book, and without. */
let services: readonly Service[];
/** The revision before the last commit, by its name and by its instant. */
let past: readonly [{ readonly revision: string }, { readonly asOf: string }];

async function ask(from: Service, options: object): Promise<PageReply> {
  const { status, text } = await from.post('nickel', {
    options: { includeSeries: true, ...options },
  });
  t.equal(status, 200);
  return parseExact(text);
}

t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  const service = await serviceOn(t, database);
  services = [service, await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' })];
  const { $metadata, data } = await ask(service, {});
  past = [{ revision: $metadata.revision }, { asOf: $metadata.asOf }];
  const last = data.find(({ code }) => code === CODE)?.series.at(-1)?.date ?? '';
  await commit(database.pool, (client) => putPoints(client, CODE, [last, null, '12345.5', null]));
});

/** The records of all pages. A cursor has the revision, so only the first request names it. */
async function pagesOf(from: Service, moment: object, options: object): Promise<readonly Listed[]> {
  const records: Listed[] = [];
  let page = await ask(from, { ...moment, ...options });
  for (;;) {
    records.push(...page.data);
    const { nextCursor: cursor } = page.$metadata;
    if (cursor === null) return records;
    page = await ask(from, { ...options, cursor });
  }
}

const tailOf = (records: readonly Listed[], count: number) =>
  records.map((each) => ({ ...each, series: each.series.slice(-count) }));

t.test('lastObservations is the tail of the series at a past revision or instant', async (t) => {
  for (const from of services) {
    const newest = await ask(from, { lastObservations: 2 });
    for (const moment of past) {
      for (const more of [{}, CONVERTED]) {
        const title = JSON.stringify({ moment, more });
        const full = await ask(from, { ...moment, ...more });
        const tail = await ask(from, { ...moment, ...more, lastObservations: 2 });
        t.equal(tail.$metadata.revision, past[0].revision);
        // A difference of whole answers takes minutes to print.
        t.ok(isDeepStrictEqual(tail, { ...full, data: tailOf(full.data, 2) }), title);
      }
      const tail = await ask(from, { ...moment, lastObservations: 2 });
      t.notOk(isDeepStrictEqual(tail.data, newest.data), 'the last commit is not in it');
    }
  }
});

t.test('lastObservations is the tail of each series on every page', async (t) => {
  for (const from of services) {
    for (const moment of [{}, ...past]) {
      for (const more of [{}, CONVERTED]) {
        const full = await ask(from, { ...moment, ...more });
        for (const [limit, lastObservations] of [
          [1, 1],
          [3, 5],
        ] as const) {
          const pages = await pagesOf(from, moment, { ...more, limit, lastObservations });
          const title = JSON.stringify({ moment, limit });
          t.ok(isDeepStrictEqual(pages, tailOf(full.data, lastObservations)), title);
        }
      }
    }
  }
});

t.test('the receipt counts points without a rate that lastObservations omits', async (t) => {
  await commit(database.pool, (client) =>
    client.query(`delete from fx_rate
      where source = 'SAMPLE' and date between '2026-01-10' and '2026-02-20'`),
  );
  for (const from of services) {
    const full = await ask(from, { currency: 'EUR' });
    const tail = await ask(from, { currency: 'EUR', lastObservations: 2 });
    const partial = full.data.filter(({ conversion }) => conversion?.status === 'partial');
    t.ok(partial.length > 0, 'points before the last have no rate');
    t.ok(isDeepStrictEqual(tail, { ...full, data: tailOf(full.data, 2) }));
  }
});
