import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { PANDAS_PYTHON } from '../support/process/python.ts';

const FILE = `${ROOT}docs/notebooks/prices.ipynb`;
const RUNNER = `${ROOT}test/docs/notebook.py`;

interface NotebookCell {
  readonly cell_type: string;
  readonly source: readonly string[];
  readonly outputs?: readonly { data?: Readonly<Record<string, readonly string[]>> }[];
}

/** The cells of a notebook without tables in HTML, which differ between versions of pandas. */
const cellsOf = (text: string): readonly NotebookCell[] =>
  JSON.parse(text).cells.map(({ outputs, ...cell }: NotebookCell) => ({
    ...cell,
    outputs: outputs?.map(({ data, ...output }) => ({
      ...output,
      data: data && { ...data, 'text/html': undefined },
    })),
  }));

// `NOTEBOOKS_WRITE=1 npm test -- test/docs/notebooks.test.ts` writes the outputs of this run.
t.test('every cell of the notebook runs and shows what the notebook says', async (t) => {
  if (PANDAS_PYTHON === null) {
    t.comment('not run, as no python3 here has pandas');
    return;
  }
  const service = await serviceOn(t, await seededDatabase(t));
  const env = {
    PATH: process.env['PATH'],
    PYTHONPATH: `${ROOT}clients/python`,
    PYTHONDONTWRITEBYTECODE: '1',
    COMMODITY_PRICES_URL: await addressOf(service.app),
    COMMODITY_PRICES_KEY: service.key,
  };
  const { stdout } = await promisify(execFile)(PANDAS_PYTHON, ['-W', 'error', RUNNER, FILE], {
    env,
    timeout: 60_000,
  });
  if (process.env['NOTEBOOKS_WRITE'] === '1') await writeFile(FILE, `${stdout}\n`);
  const committed = await readFile(FILE, 'utf8');
  const cells = cellsOf(committed);
  t.same(cellsOf(stdout), cells);
  t.ok(cells.filter((each) => (each.outputs ?? []).length > 0).length >= 8);
  t.notMatch(committed, service.key);
  t.notMatch(committed, /cps_|127\.0\.0\.1/);
});
