import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { archivePath } from './support.ts';

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url));

/** Held at once, these rows would not fit into the heap. */
const POINTS = { prices: 100, points: 2_000 };
const HEAP_MIB = 96;
const RESIDENT_MIB = 450;

t.test('the memory of an export and an import does not grow with the data', async (t) => {
  const original = await testDatabase(t);
  await fill(original, POINTS);
  /** Runs with a heap of its own size; fails when that is too small. */
  const residentOf = async (...args: readonly string[]): Promise<number> => {
    const heap = `--max-old-space-size=${HEAP_MIB}`;
    const { stdout } = await promisify(execFile)(process.execPath, [heap, WORKER, ...args]);
    return Number(/(\d+) KiB at most/.exec(stdout)?.[1]) / 1024;
  };
  const folder = await archivePath(t);
  const exporting = await residentOf('export', original.url, folder);
  t.ok(exporting < RESIDENT_MIB, `export: ${Math.round(exporting)} MiB`);
  const target = await testDatabase(t);
  const importing = await residentOf('import', target.url, folder);
  t.ok(importing < RESIDENT_MIB, `import: ${Math.round(importing)} MiB`);
});
