import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { Descriptions } from '../../src/ingest/descriptions/descriptions.ts';
import { Refusal } from '../../src/ingest/records/load-error.ts';
import { Problems } from '../../src/ingest/records/problems.ts';
import { SeriesNames } from '../../src/ingest/staging/staged-series.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

const BLOCK = 262_144;
const BLOCKS = 400;

/** A slice of 24 characters of a file block, as readers produce. */
function cut(index: number): string {
  const block = Buffer.alloc(BLOCK, '.');
  const code = `CODE-${String(index).padStart(19, '0')}`;
  block.write(code, 100);
  return block.toString('latin1').slice(100, 100 + code.length);
}

/** Bytes that stay allocated for all kept texts. */
function heldBy(keep: (text: string, index: number) => void): number {
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < BLOCKS; index += 1) keep(cut(index), index);
  collect();
  return process.memoryUsage().heapUsed - before;
}

t.test('texts that a load keeps do not retain the blocks of the file', async (t) => {
  const series = new SeriesNames();
  const problems = new Problems();
  const descriptions = new Descriptions(problems);
  const max = (BLOCK * BLOCKS) / 10;
  t.ok(heldBy((text) => series.numberOf(text, 1)) < max, 'codes');
  t.ok(
    heldBy((value) => problems.reject('unknown_code', value, { value, column: value })) < max,
    'problems',
  );
  const described = heldBy((code, line) => {
    const attributes = { name: code };
    descriptions.addPrice(line, { kind: 'price', line, code, attributes, whenPresent: 'compare' });
    descriptions.add({ kind: 'value', line, dimension: 'purity', name: code });
  });
  t.ok(described < max, 'descriptions');
  t.equal(series.names.length + problems.kept.length, 2 * BLOCKS, 'all of it is still in use');
  t.equal(descriptions.prices.size + descriptions.others.length, 2 * BLOCKS);
});

const MESSAGE = 'The file describes more than 67108864 characters of prices: load it in parts';

t.test('descriptions of more than 64 MiB are refused in words', async (t) => {
  const descriptions = new Descriptions(new Problems());
  const attributes = { specification: 'x'.repeat(1_000_000) };
  const add = (line: number) =>
    descriptions.addPrice(line, {
      kind: 'price',
      line,
      code: `A-${line}`,
      attributes,
      whenPresent: 'compare',
    });
  for (let line = 1; line <= 67; line += 1) add(line);
  t.throws(() => add(68), new Refusal('too_many_prices', MESSAGE, { line: 68 }));
});
