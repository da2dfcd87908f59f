import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { logStatements } from '../support/database/statement-log.ts';
import { serviceOn } from '../support/http/service.ts';

/** The number of prices of each COPY. */
const pricesAsked = (statements: readonly string[]): number[] =>
  statements.flatMap((each) => {
    const [, ids] = /^copy .* any\('\{([\d,]+)\}'\)/s.exec(each) ?? [];
    return ids === undefined ? [] : [ids.split(',').length];
  });

for (const [title, points, asked] of [
  ['long series are read a few at a time', 3_000, [4, 5, 5, 5, 5, 5, 5, 5, 1]],
  ['short series are read many at a time, up to 20', 10, [4, 8, 16, 12]],
] as const) {
  t.test(title, async (t) => {
    const database = await testDatabase(t);
    const statements = logStatements(database.pool);
    await fill(database, { prices: 40, points });
    const service = await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' });
    const { status, json } = await service.post(BULK_MARKET.slug, {
      options: { includeSeries: true },
    });
    t.equal(status, 200);
    t.same(pricesAsked(statements), asked, 'the memory of an answer does not depend on it');
    t.equal(json.data.length, 40);
    t.ok(json.data.every((each: { series: unknown[] }) => each.series.length === points));
  });
}
