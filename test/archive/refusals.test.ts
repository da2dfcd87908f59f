import { appendFile, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { importArchive } from '../../src/archive/import.ts';
import { stateOf } from '../ingest/support/loading.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { failureOf, writeMinimalData } from '../support/database/minimal-data.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';
import { exported, imported, manifestOf, putFile, putManifest } from './support.ts';

let original: TestDatabase;
let target: TestDatabase;
let before: string;
t.before(async () => {
  original = await testDatabase(t);
  await writeMinimalData(original.pool);
  await commit(original.pool, (client) =>
    putPoints(client, 'T-1', ['2024-01-02', '9', '10', '11'], ['2024-01-03', null, '10.25', null]),
  );
  await commit(original.pool, (client) =>
    putPoints(client, 'T-1', ['2024-01-03', null, '10.5', null]),
  );
  target = await testDatabase(t);
  before = await stateOf(target.pool);
});

/** An archive of the original that something has happened to. */
async function spoilt(
  test: Parameters<typeof exported>[0],
  spoil: (folder: string) => Promise<unknown>,
): Promise<string> {
  const folder = await exported(test, original.client);
  await spoil(folder);
  return folder;
}

type Spoiling = readonly [(folder: string) => Promise<unknown>, RegExp];

/** Replaces a text in a file, its sum and size set right: only the content is wrong. */
const replacing =
  (name: string, from: string | RegExp, to: string) =>
  async (folder: string): Promise<void> => {
    const text = await readFile(join(folder, name), 'utf8');
    const changed = text.replace(from, to);
    if (changed === text) throw new Error(`there is no ${from} in ${name}`);
    await putFile(folder, name, Buffer.from(changed));
  };

/** Changes the manifest. */
const withManifest =
  (change: (manifest: Awaited<ReturnType<typeof manifestOf>>) => unknown) =>
  async (folder: string): Promise<void> =>
    putManifest(folder, change(await manifestOf(folder)));

const flipByte = async (path: string): Promise<void> => {
  const bytes = await readFile(path);
  const at = Math.floor(bytes.length / 2);
  bytes.writeUInt8((bytes.readUInt8(at) + 1) % 256, at);
  await writeFile(path, bytes);
};

const SPOILT: Readonly<Record<string, Spoiling>> = {
  'one byte is another': [
    (folder) => flipByte(join(folder, 'series.csv')),
    /^series\.csv was changed after the export/,
  ],
  'a file is cut short': [
    (folder) => truncate(join(folder, 'series.csv'), 20),
    /^series\.csv has 20 bytes; the manifest says \d+/,
  ],
  'a file is longer': [
    (folder) => appendFile(join(folder, 'fx_rate.csv'), '\n'),
    /^fx_rate\.csv has \d+ bytes/,
  ],
  'a file is missing': [
    (folder) => rm(join(folder, 'revision.csv')),
    /^revision\.csv is missing from /,
  ],
  'there is no manifest': [
    (folder) => rm(join(folder, 'manifest.json')),
    /holds no manifest\.json: it is no finished export/,
  ],
  'the manifest is no JSON': [
    (folder) => writeFile(join(folder, 'manifest.json'), '{'),
    /manifest\.json is not JSON/,
  ],
  'the manifest is that of something else': [
    (folder) => putManifest(folder, { name: 'commodity-prices-service' }),
    /is not the manifest of an archive of prices/,
  ],
  'the manifest is of a version to come': [
    withManifest((manifest) => ({ ...manifest, version: 2 })),
    /is of version 2; this version reads 1/,
  ],
  'the manifest lacks its epoch': [
    withManifest(({ epoch: _epoch, ...rest }) => rest),
    /manifest\.json .*epoch/,
  ],
  'a table is missing from the manifest': [
    withManifest((manifest) => ({ ...manifest, files: manifest.files.slice(1) })),
    /lacks the tables service/,
  ],
  'the manifest leads out of the folder': [
    withManifest((manifest) => ({
      ...manifest,
      files: manifest.files.map((each) => ({ ...each, file: `../${each.file}` })),
    })),
    /names the file \.\.\/service\.csv for service/,
  ],
  'the manifest has another epoch': [
    withManifest((manifest) => ({ ...manifest, epoch: 'another' })),
    /does not hold the epoch and revision of its manifest/,
  ],
  'the archive is of an older schema': [
    withManifest((manifest) => ({ ...manifest, migrations: manifest.migrations.slice(0, 1) })),
    /of another schema: the database lacks none, the archive 0002-reference/,
  ],
  'the archive is of a schema to come': [
    withManifest((manifest) => ({
      ...manifest,
      migrations: [...manifest.migrations, '9999-more'],
    })),
    /the database lacks 9999-more, the archive none; import it with the version that wrote it/,
  ],
  'a column is missing': [
    withManifest((manifest) => ({
      ...manifest,
      files: manifest.files.map((each) => ({ ...each, columns: each.columns.slice(1) })),
    })),
    /^service\.csv has the columns epoch text, the table id smallint, epoch/,
  ],
  'columns of a CSV file are swapped': [
    replacing('series.csv', 'price_id,date', 'date,price_id'),
    /^series\.csv: column name mismatch .*"date".*"price_id"/,
  ],
  'it is in Parquet, by version 1.0.0': [
    withManifest((manifest) => ({ ...manifest, fileFormat: 'parquet' })),
    /manifest\.json is of parquet files, which cannot be imported; export again as CSV$/,
  ],
  'bytes are no UTF-8': [
    async (folder) => {
      const text = await readFile(join(folder, 'series.csv'), 'latin1');
      const bytes = Buffer.from(text.replace(',10.5,', ',1\xff,'), 'latin1');
      await putFile(folder, 'series.csv', bytes);
    },
    /^series\.csv: invalid byte sequence for encoding "UTF8"/,
  ],
  'a row is missing': [
    replacing('series.csv', /\n[^\n]+\n$/, '\n'),
    /^series\.csv has 1 rows; the manifest says 2/,
  ],
  'a value is no number': [
    replacing('series.csv', ',10.5,', ',"10,5",'),
    /^series\.csv: invalid input syntax for type numeric: "10,5" \(COPY series, line 3/,
  ],
  'a value breaks a rule of the database': [
    replacing('series.csv', ',9,10,11,', ',12,10,11,'),
    /^series\.csv: .* violates check constraint "series_low_mid_high"/,
  ],
  'a row refers to what is not there': [
    replacing('revision_scope.csv', 'nickel,1', 'nickel,77'),
    /^revision_scope\.csv: .* violates foreign key constraint/,
  ],
  'a point of the past ended with a revision that is not there': [
    replacing('series_history.csv', /,\d+\n$/, ',99\n'),
    /^series_history\.csv: a row ended with revision 99, which revision\.csv does not have$/,
  ],
};

for (const [what, [spoil, message]] of Object.entries(SPOILT)) {
  t.test(`an archive is refused whole when ${what}`, async (t) => {
    const folder = await spoilt(t, spoil);
    const failure = await failureOf(importArchive(target.client, { folder }));
    t.match(failure, { name: 'ArchiveRefusal', message });
    t.equal(await stateOf(target.pool), before, 'and nothing was written');
  });
}

t.test(
  'a CSV archive whose manifest has the file format of version 1.0.0 is imported',
  async (t) => {
    const folder = await exported(t, original.client);
    await putManifest(folder, { ...(await manifestOf(folder)), fileFormat: 'csv' });
    const copy = await imported(t, folder);
    t.equal(await stateOf(copy.pool), await stateOf(original.pool));
  },
);
