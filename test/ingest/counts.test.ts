import t from 'tap';
import type { LoadProgress } from '../../src/ingest/load/request.ts';
import { describePrices, loadingDatabase, loadText, points } from './support/loading.ts';

const HEADER =
  'code,date,mid,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure';
const GOOD = 'aluminium,N,Bauxite,Spot,Price,Weekly,USD,t';
const WRONG = 'aluminium,N,Bauxit,Spott,Price,Weekl,USD,t';

t.test('each faulty row of a refused file is counted once', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  await loadText(t, client, 'csv', points('A,2026-01-01,,100,,', 'A,2026-01-08,,100,,'));
  const files: [
    what: string,
    content: string,
    counts: [rows: number, rejected: number, errors: number],
  ][] = [
    [
      'one wrong reference beside a value',
      `${HEADER}\nN,2026-01-01,1,${GOOD.replace('aluminium', 'aluminum')}\n`,
      [1, 1, 1],
    ],
    [
      'several wrong references beside a value',
      [HEADER, `N,2026-01-01,1,${WRONG}`, 'N,2026-01-08,1,,,,,,,,', ''].join('\n'),
      [2, 1, 3],
    ],
    ['a correction that jumps', points('A,2026-01-08,,1000,,', 'A,2026-01-15,,1000,,'), [2, 1, 2]],
    [
      'faults of the text, of codes, of days and of values',
      points(
        'A,2026-01-01,,100,,',
        'A,2026-01-08,,101,,',
        'A,2026-01-08,,102,,',
        'Z,2026-01-08,,1,,',
        'Z,2026-01-08,,1,,',
        'A,2026-01-15,1,,,',
        'A,2026-01-22',
      ),
      [7, 6, 6],
    ],
  ];
  for (const [what, content, [rows, rejected, errorsTotal]] of files) {
    const options = { acceptJumps: false };
    const report = await loadText(t, client, 'csv', content, options);
    t.match(report, { status: 'refused', counts: { rows, rejected }, errorsTotal }, what);
    t.equal(report.preview?.rejected, rejected, what);
  }
});

t.test('the rows of the progress are those of the report', async (t) => {
  const { client } = await loadingDatabase(t);
  const lines = [HEADER, `N,2026-01-01,1,${GOOD}`, 'N,2026-01-08,2,,,,,,,,', 'N,2026-01-15'];
  const states: LoadProgress[] = [];
  const report = await loadText(t, client, 'csv', `${lines.join('\n')}\n`, {
    onProgress: (state) => states.push(state),
  });
  t.match(report, { status: 'refused', counts: { rows: 3, rejected: 1 } });
  const read = states.filter(({ step }) => step === 'reading');
  t.equal(read.at(-1)?.rows, 3);
});
