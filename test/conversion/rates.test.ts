import { type Kysely, sql } from 'kysely';
import t from 'tap';
import { pairOf, rateDay, rateScale, scaledRate } from '../../src/conversion/rate-table.ts';
import { numberOf } from '../../src/db/revisions.ts';
import type { Database } from '../../src/db/schema.ts';
import {
  type RateSource,
  type RatesReader,
  rateSource,
  ratesReader,
} from '../../src/prices/market/rates.ts';
import { testDatabase } from '../support/database/database.ts';
import { dayOf } from './support.ts';

type Rates = readonly (readonly [source: string, iso: string, date: string, rate: string])[];

/** Runs a statement as one commit; returns its revision. */
const commit = (db: Kysely<Database>, write: (trx: Kysely<Database>) => Promise<unknown>) =>
  db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ revision: string }>`
      select open_revision('a test') as revision`.execute(trx);
    await write(trx);
    return rows[0]?.revision ?? '';
  });

const putRates = (db: Kysely<Database>, rates: Rates) =>
  commit(db, async (trx) => {
    for (const [source, iso, date, rate] of rates) {
      await sql`insert into fx_rate (source, currency_id, date, rate)
        values (${source}, (select id from currency where iso = ${iso}), ${date}, ${rate})
        on conflict (source, currency_id, date) do update set rate = excluded.rate`.execute(trx);
    }
  });

/** A database with currencies, three sources, and no rates. Returns its newest revision too. */
async function prepared(test: Parameters<typeof testDatabase>[0]) {
  const { db } = await testDatabase(test);
  const revision = await commit(db, async (trx) => {
    for (const iso of ['EUR', 'USD', 'CNY', 'JPY']) {
      await sql`insert into currency (uuid, iso, name, symbol)
        values (gen_random_uuid(), ${iso}, ${iso}, ${iso})
        on conflict (iso) do nothing`.execute(trx);
    }
    for (const [slug, base, sample] of [
      ['ECB', 'EUR', false],
      ['FED', 'USD', false],
      ['SAMPLE', 'EUR', true],
    ] as const) {
      await sql`insert into fx_source (slug, name, base_currency_id, is_sample)
        values (${slug}, ${slug}, (select id from currency where iso = ${base}), ${sample})
        on conflict (slug) do nothing`.execute(trx);
    }
  });
  const { rows } = await sql<{ id: number; iso: string }>`select id, iso from currency`.execute(db);
  const ids = new Map(rows.map((each) => [each.iso, each.id]));
  const id = (iso: string): number => ids.get(iso) ?? 0;
  return { db, id, revision };
}

/** The rates of a source that is there. */
async function tableOf(read: RatesReader, db: Kysely<Database>, source: RateSource) {
  const table = await read(db, 'e1', source);
  if (!table) throw new Error('no table');
  return table;
}

t.test('rates are read to the last digit, at the revision asked for', async (t) => {
  const { db, id } = await prepared(t);
  const first = await putRates(db, [
    ['ECB', 'USD', '2019-11-08', '1.1034'],
    ['ECB', 'CNY', '2019-11-08', '7.7115'],
    ['ECB', 'JPY', '2019-11-08', '120.72'],
    ['ECB', 'JPY', '1999-01-04', '133'],
    ['ECB', 'JPY', '2019-11-11', '99999.9999999999'],
    ['FED', 'CNY', '2019-11-08', '6.9949'],
  ]);
  await putRates(db, [['ECB', 'CNY', '2019-11-08', '7.8']]);
  const read = ratesReader(4);
  const legs = async (revision: string | null) => {
    const table = await tableOf(read, db, await rateSource(db, 'ECB', revision));
    const pair = pairOf(table, id('CNY'), id('JPY'));
    const day = pair ? rateDay(pair, dayOf('2019-11-10')) : 0;
    const leg = (each: 'from' | 'to') =>
      pair && [scaledRate(pair[each], day), rateScale(pair[each], day)];
    return { source: table.source, base: table.base.iso, from: leg('from'), to: leg('to') };
  };
  const then = { source: 'ECB', base: 'EUR', from: [77_115, 4], to: [12_072, 2] };
  t.same(await legs(first), then);
  t.same(await legs(null), { ...then, from: [78, 1] });
  const table = await tableOf(read, db, await rateSource(db, 'ECB', first));
  const yen = table.currencies.get(id('JPY')) ?? null;
  t.equal(scaledRate(yen, dayOf('2019-11-11')), 999_999_999_999_999);
  t.equal(rateScale(yen, dayOf('2019-11-11')), 10);
  t.equal(yen?.firstDay, dayOf('1999-01-04'));
  t.equal(scaledRate(yen, dayOf('1999-01-04')), 133);
});

t.test('a sample source serves only while no other holds any rate', async (t) => {
  const { db, revision } = await prepared(t);
  const slugAt = async (at: string | null) => (await rateSource(db, 'ECB', at)).slug;
  t.equal(await slugAt(null), 'ECB', 'no source has a rate: the configured one');
  const sampled = await putRates(db, [['SAMPLE', 'USD', '2024-01-02', '1.1']]);
  t.equal(await slugAt(null), 'SAMPLE');
  const real = await putRates(db, [['FED', 'CNY', '2024-01-02', '7.1']]);
  t.equal(await slugAt(null), 'ECB', 'another real source ends the sample, and fills in for none');
  t.equal(await slugAt(sampled), 'SAMPLE', 'but not in the past');
  t.equal(await slugAt(revision), 'ECB');
  const withdrawn = await commit(db, (trx) =>
    sql`delete from fx_rate where source = 'FED'`.execute(trx),
  );
  t.equal(await slugAt(withdrawn), 'SAMPLE');
  t.equal(await slugAt(real), 'ECB');
});

t.test('a source is known by the revision of its own newest rates', async (t) => {
  const { db } = await prepared(t);
  const first = await putRates(db, [['ECB', 'USD', '2024-01-02', '1.1']]);
  const other = await putRates(db, [['FED', 'CNY', '2024-01-02', '7.1']]);
  const second = await putRates(db, [['ECB', 'USD', '2024-01-03', '1.2']]);
  const revisionAt = async (slug: string, at: string | null) =>
    numberOf((await rateSource(db, slug, at)).revision);
  t.equal(await revisionAt('ECB', other), first, 'a load of another source changes nothing');
  t.equal(await revisionAt('ECB', null), second);
  t.equal(await revisionAt('FED', first), '0', 'before its first rate');
  t.match(await rateSource(db, 'FED', null), { slug: 'FED', base: { iso: 'USD' } });
});

t.test('a source that does not exist is one without rates', async (t) => {
  const { db } = await prepared(t);
  const read = ratesReader(1);
  const nobody = await rateSource(db, 'NOBODY', null);
  const nothing = { slug: 'NOBODY', base: null, isSample: false, revision: '0' };
  t.match(nobody, nothing);
  t.equal(await read(db, 'e1', nobody), null);
  await putRates(db, [['SAMPLE', 'USD', '2024-01-02', '1.1']]);
  t.equal((await rateSource(db, 'NOBODY', null)).slug, 'SAMPLE', 'as before the first real rate');
  await putRates(db, [['ECB', 'USD', '2024-01-02', '1.1']]);
  t.match(await rateSource(db, 'NOBODY', null), nothing, 'and no other source replaces it');
  const empty = await testDatabase(t);
  t.same(await rateSource(empty.db, 'ECB', null), { ...nothing, slug: 'ECB', scopes: [] });
});

t.test('a sample source that was configured still serves for want of others only', async (t) => {
  const { db } = await prepared(t);
  const sampled = await putRates(db, [['SAMPLE', 'USD', '2024-01-02', '1.1']]);
  await putRates(db, [['ECB', 'USD', '2024-01-02', '1.2']]);
  t.equal((await rateSource(db, 'SAMPLE', sampled)).base?.iso, 'EUR');
  t.same((await rateSource(db, 'SAMPLE', null)).base, null);
});

t.test('the scopes of a choice name every load that could have changed it', async (t) => {
  const { db } = await prepared(t);
  const scopesAt = async (at: string | null) => (await rateSource(db, 'ECB', at)).scopes;
  const all = ['fx:ECB', 'fx:FED', 'fx:SAMPLE'];
  t.same(await scopesAt(null), all, 'no source has a rate: any load decides');
  await putRates(db, [['SAMPLE', 'USD', '2024-01-02', '1.1']]);
  t.same(await scopesAt(null), all, 'a sample serves: any real rate ends that');
  const loaded = await putRates(db, [['ECB', 'USD', '2024-01-02', '1.2']]);
  t.same(await scopesAt(null), ['fx:ECB'], 'its own rates serve: no other load matters');
  await commit(db, (trx) => sql`delete from fx_rate where source = 'ECB'`.execute(trx));
  t.same(await scopesAt(null), all, 'withdrawn again: its own past decides too');
  t.same(await scopesAt(loaded), ['fx:ECB']);
});

t.test('a revision is read once, and only as many are cached as were asked for', async (t) => {
  const { db } = await prepared(t);
  const first = await putRates(db, [['ECB', 'USD', '2024-01-02', '1.1']]);
  await putRates(db, [['ECB', 'USD', '2024-01-02', '1.2']]);
  const old = await rateSource(db, 'ECB', first);
  const now = await rateSource(db, 'ECB', null);
  const readTwo = ratesReader(2);
  t.equal(await readTwo(db, 'e1', old), await readTwo(db, 'e1', old));
  t.not(await readTwo(db, 'e1', now), await readTwo(db, 'e1', old));
  t.not(await readTwo(db, 'e1', now), await readTwo(db, 'e2', now), 'epochs count apart');
  const readOne = ratesReader(1);
  const cached = await readOne(db, 'e1', old);
  await readOne(db, 'e1', now);
  t.not(await readOne(db, 'e1', old), cached, 'the other revision evicted it');
});

t.test('a failed read is not cached', async (t) => {
  const { db } = await prepared(t);
  await putRates(db, [['ECB', 'USD', '2024-01-02', '1.1']]);
  const source = await rateSource(db, 'ECB', null);
  const read = ratesReader(2);
  await sql`alter table fx_rate rename to fx_rate_away`.execute(db);
  await sql`alter function fx_rate_at rename to fx_rate_at_away`.execute(db);
  await t.rejects(read(db, 'e1', source));
  await sql`alter function fx_rate_at_away rename to fx_rate_at`.execute(db);
  await sql`alter table fx_rate_away rename to fx_rate`.execute(db);
  t.equal((await tableOf(read, db, source)).currencies.size, 1);
});
