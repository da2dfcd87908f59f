import fc from 'fast-check';
import t from 'tap';
import { UndoRefusal } from '../../../src/ingest/ledger/undo.ts';
import { withdraw } from '../../../src/ingest/ledger/withdraw.ts';
import { RULES, verify } from '../../../src/verify/verify.ts';
import type { TestDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { pastOf, withoutSeq } from '../../support/prices/feed-oracle.ts';
import { readAll } from '../../support/prices/feed-pages.ts';
import { CORRECTING, loadingDatabase, loadText } from '../support/loading.ts';
import { Ledger } from './undo-model.ts';
import { NAMES, priceOf, undoBatch } from './undo-support.ts';

type Test = Parameters<typeof loadText>[0];

const CODES = 3;
const days = fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 4 });
const code = fc.integer({ min: 1, max: CODES });

/** A load of points of one renamed price; a withdrawal; an undo of any earlier batch. */
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('load' as const),
      code,
      days,
      mid: fc.integer({ min: 1, max: 3 }),
      name: fc.constantFrom('One', 'Two'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('withdraw' as const), code, days }) },
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant('undo' as const),
      back: fc.integer({ min: 0, max: 9 }),
    }),
  },
);
type RandomStep = typeof step extends fc.Arbitrary<infer T> ? T : never;

const dateOf = (day: number): string => `2026-01-0${day}`;

/** One sequence of batches with its own codes, and the model of it. */
class BatchSequence {
  readonly model = new Ledger();
  /** Batch numbers, in the order of the model. */
  private readonly numbers: number[] = [];
  private readonly test: Test;
  private readonly database: TestDatabase;
  private readonly place: number;

  constructor(test: Test, database: TestDatabase, place: number) {
    this.test = test;
    this.database = database;
    this.place = place;
  }

  /** Runs one step in the database and in the model. @returns both results */
  async take(taken: RandomStep): Promise<readonly [done: string, expected: string]> {
    if (taken.kind === 'load') return this.load(taken);
    return taken.kind === 'withdraw' ? this.withdraw(taken) : this.undo(taken.back);
  }

  /** The prices and values of the run in the database. */
  async state(): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ line: string }>(
      `select line from (
          select code || ' ' || name as line from price where code like $1
          union all select code || ' ' || date || ' ' || mid
            from series join price on id = price_id where code like $1) as lines
        order by line collate "C"`,
      [`R${this.place}-%`],
    );
    return rows.map(({ line }) => line);
  }

  private nameOf(number: number): string {
    return `R${this.place}-${number}`;
  }

  private async load(taken: Extract<RandomStep, { kind: 'load' }>) {
    const name = this.nameOf(taken.code);
    const price = JSON.parse(priceOf(name));
    const publishedAt = '2026-01-20T16:00:00Z';
    const lines = [
      { price: { ...price.price, name: taken.name } },
      ...taken.days.map((day) => ({
        ...{ code: name, date: dateOf(day), mid: taken.mid, publishedAt },
      })),
    ];
    // Trailing empty lines make each file unique.
    const end = '\n'.repeat(this.numbers.length);
    const text = lines.map((each) => `${JSON.stringify(each)}\n`).join('') + end;
    const report = await loadText(this.test, this.database.client, 'ndjson', text, CORRECTING);
    this.numbers.push(report.batch ?? 0);
    const values = taken.days.map((day) => [dateOf(day), String(taken.mid)] as const);
    const changed = this.model.load(name, taken.name, values);
    return [report.status, changed ? 'applied' : 'unchanged'] as const;
  }

  private async withdraw({
    code: number,
    days: wanted,
  }: Extract<RandomStep, { kind: 'withdraw' }>) {
    const name = this.nameOf(number);
    const dates = wanted.map(dateOf).filter((date) => this.model.has(name, date));
    if (dates.length === 0) return ['', ''] as const;
    const selection = { code: name, dates };
    const request = { selection, actor: 'tester', reason: 'a test' };
    const report = await withdraw(this.database.client, request);
    this.numbers.push(report.batch ?? 0);
    this.model.withdraw(name, dates);
    return [report.status, 'applied'] as const;
  }

  private async undo(back: number) {
    const index = this.numbers.length - 1 - back;
    const number = this.numbers[index];
    if (number === undefined) return ['', ''] as const;
    const expected = this.model.undo(index) ? 'applied' : 'refused';
    try {
      const report = await undoBatch(this.database.client, number);
      this.numbers.push(report.batch ?? 0);
      return [report.status, expected] as const;
    } catch (error) {
      if (!(error instanceof UndoRefusal)) throw error;
      return ['refused', expected] as const;
    }
  }
}

t.test(
  'any sequence of loads, withdrawals and undos leads to what a simple model says',
  async (t) => {
    const database = await loadingDatabase(t);
    await loadText(t, database.client, 'ndjson', NAMES);
    let place = 0;
    const seen = new Map<string, number>();
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 12, maxLength: 30 }),
      async (steps) => {
        place += 1;
        const run = new BatchSequence(t, database, place);
        for (const each of steps) {
          const [done, expected] = await run.take(each);
          const what = `${each.kind} ${done}`;
          seen.set(what, (seen.get(what) ?? 0) + 1);
          const state = await run.state();
          const wanted = run.model.state();
          if (done !== expected || state.join('\n') !== wanted.join('\n')) {
            throw new Error(
              `${what}, not ${expected}: ${state.join(', ')} and not ${wanted.join(', ')}`,
            );
          }
        }
      },
    );
    await fc.assert(property, { numRuns: 8 });
    for (const what of ['load applied', 'withdraw applied', 'undo applied', 'undo refused']) {
      t.ok(seen.get(what), `${what}: ${seen.get(what)}`);
    }
    const { rows } = await database.pool.query(`
    select price_id, date from series_history h where exists (select from series_history later
      where (later.price_id, later.date) = (h.price_id, h.date)
        and later.revision > h.revision and later.corrections < h.corrections)`);
    t.same(rows, [], 'no value ever counts fewer corrections than before');
    const { rules } = await verify(database.client, RULES, () => {});
    t.same(
      rules.filter(({ count }) => count > 0),
      [],
      'every rule of the stored data holds',
    );
    const service = await serviceOn(t, database);
    const feed = (await readAll(service, 500)).map(withoutSeq);
    t.same(feed, await pastOf(database.pool), 'the feed has every change once');
  },
);
