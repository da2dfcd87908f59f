import t from 'tap';
import { blocksOf, columnsIn, extentIn, withReplaced } from '../../src/book/block.ts';
import { type Columns, columnSlice } from '../../src/conversion/columns.ts';
import { ColumnsBuilder } from '../../src/prices/series/collector.ts';
import { ALL_DAYS, type Days } from '../../src/std/days.ts';
import { randomOf } from '../conversion/support.ts';

const random = randomOf(20_261_128);
const below = (count: number): number => Math.floor(random() * count);

/** Points on some of the days from 2010 on, over up to nine years. */
function anySeries(): Columns {
  const builder = new ColumnsBuilder();
  const daysMax = 1 + below(3_000);
  const share = random();
  for (let day = 3_653; day < 3_653 + daysMax; day += 1) {
    if (random() > share) continue;
    const mid = below(2) === 0 ? below(1_000_000) : below(1_000_000) * 1e6;
    const micros = day * 86_400_000_000 + below(3) * 3_600_000_000;
    builder.add(day, below(9) === 0 ? Number.NaN : mid - 5, mid, mid + 5, 2, micros, below(3));
  }
  return builder.finish();
}

function anyDays(): Days {
  const [one, other] = [3_600 + below(3_200), 3_600 + below(3_200)];
  return {
    first: below(4) === 0 ? -Infinity : Math.min(one, other),
    last: below(4) === 0 ? Infinity : Math.max(one, other),
  };
}

/** The points within some days, found one by one. */
function within(columns: Columns, { first, last }: Days): Columns {
  const from = columns.day.findIndex((day) => day >= first);
  const to = columns.day.findLastIndex((day) => day <= last) + 1;
  return from < 0 || to <= from ? columnSlice(columns, 0, 0) : columnSlice(columns, from, to);
}

t.test('blocks return the points of any days, and their extent', async (t) => {
  let several = 0;
  for (let round = 0; round < 300; round += 1) {
    const columns = anySeries();
    const blocks = blocksOf(columns);
    several += blocks.length > 2 ? 1 : 0;
    t.same(columnsIn(blocks, ALL_DAYS), columns);
    const days = anyDays();
    const found = within(columns, days);
    t.same(columnsIn(blocks, days), found);
    const { length } = found;
    const [first, last] = [found.day[0], found.day[length - 1]];
    t.same(extentIn(blocks, days), length === 0 ? null : { first, last, points: length });
    const count = 1 + below(400);
    const tail = columnSlice(found, Math.max(0, length - count), length);
    t.same(columnsIn(blocks, days, count), tail, `the last ${count}`);
  }
  t.ok(several > 100, `${several} series of several blocks`);
});

t.test('replaced days change their points only, and the blocks of other years stay', async (t) => {
  let shared = 0;
  for (let round = 0; round < 300; round += 1) {
    const [before, after] = [anySeries(), anySeries()];
    const blocks = blocksOf(before);
    const first = 3_600 + below(3_200);
    const days = { first, last: first + below(40) };
    const changed = withReplaced(blocks, days, within(after, days));
    const all = columnsIn(changed, ALL_DAYS);
    const outside = [
      { first: -Infinity, last: days.first - 1 },
      { first: days.last + 1, last: Infinity },
    ];
    for (const each of outside) t.same(within(all, each), within(before, each));
    t.same(within(all, days), within(after, days));
    shared += blocks.filter((block) => changed.includes(block)).length;
  }
  t.ok(shared > 300, `${shared} blocks are shared`);
});
