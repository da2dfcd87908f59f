import { access } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { NoReferenceError } from '../../../src/ingest/load/open.ts';
import { testDatabase } from '../../support/database/database.ts';
import { prices } from '../../support/process/programs.ts';
import {
  describePrices,
  fileOf,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  points,
} from '../support/loading.ts';

t.test('a load before the reference data says which command gives them', async (t) => {
  const { client, url: DATABASE_URL } = await testDatabase(t);
  await t.rejects(loadFile(client, 'csv', fixture('prices.csv')), NoReferenceError);
  const outcome = await prices(t, { DATABASE_URL }, 'load', 'ecb', fixture('ecb-hist.csv'));
  t.match(outcome, { code: 2, stdout: '', stderr: /no reference data; .* db seed --reference\n$/ });
});

t.test('a file of which every row was set aside is refused by its exit code', async (t) => {
  const { client, url: DATABASE_URL } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const load = async (content: string, rejects: string) => {
    const file = await fileOf(t, content);
    const path = join(dirname(file), rejects);
    const outcome = await prices(t, { DATABASE_URL }, 'load', 'csv', file, '--rejects', path);
    await access(path);
    return outcome;
  };
  const none = await load(points('A,2026-01-01,,x,,', 'B,2026-01-01,,1,,'), 'all.csv');
  t.match(none, { code: 3, stdout: /Every row was rejected \(batch 2\)\./ });
  t.match(none.stdout, /The rejected rows are in .*all\.csv/);
  const file = await fileOf(t, points('A,2026-01-01,,x,,'));
  const taken = await prices(t, { DATABASE_URL }, 'load', 'csv', file, '--rejects', file);
  t.match(taken, { code: 2, stdout: '', stderr: /exists already: name another file/ });
  const some = await load(points('A,2026-01-01,,x,,', 'A,2026-01-02,,1,,'), 'some.csv');
  t.match(some, { code: 6, stdout: /\nLoaded \(batch 3/ });
});

t.test('a frequency that is there is left alone, and no other can be added', async (t) => {
  const { client } = await loadingDatabase(t);
  const messages = async (dimension: string, name: string) => {
    const line = JSON.stringify({ value: { dimension, name } });
    const { errors } = await loadText(t, client, 'ndjson', `${line}\n`);
    return errors.map(({ message }) => message);
  };
  t.strictSame(await messages('frequency', 'weekly'), []);
  t.match(await messages('frequency', 'Hourly'), [
    /^Frequencies cannot be added; there are .*Weekly/,
  ]);
  t.match(await messages('puritie', 'x'), [
    /No dimension of this name .* did you mean "purity"\?$/,
  ]);
  const [near = ''] = await messages('frequenc', 'x');
  t.notMatch(near, /frequency/);
});
