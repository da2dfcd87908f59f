import t from 'tap';
import type { RecordContext } from '../../../src/prices/answer/answer.ts';
import type { Contents } from '../../../src/prices/write/points.ts';
import { wideSlices } from '../../../src/prices/write/wide.ts';
import { wideSheet } from '../../../src/prices/write/xlsx/wide-sheet.ts';

const PRICES = 500;
const DAYS = 4_000;

/** The parts of a context that a wide table reads. */
const CONTEXT = {
  plan: { page: { limit: null, after: null } },
  work: { hold: () => true, holdMax: Number.MAX_SAFE_INTEGER },
  wideCellsMax: PRICES * DAYS,
} as unknown as RecordContext;

const contentsOn = (place: number, day: Int32Array) =>
  ({
    price: { code: `P-${place}` },
    currencyAndUnit: { currency: null, unitOfMeasure: { name: 'Percent' } },
    points: {
      day,
      mid: {
        scaled: new Float64Array(day.length).fill(1),
        scale: new Uint8Array(day.length),
        wide: null,
      },
    },
  }) as unknown as Contents;

/** One price of each day, and others of one day each. */
async function* sparseRecords(): AsyncGenerator<Contents> {
  yield contentsOn(
    0,
    Int32Array.from({ length: DAYS }, (_, day) => day),
  );
  for (let place = 1; place < PRICES; place += 1) yield contentsOn(place, Int32Array.of(place));
}

t.test('a sheet with few values yields, although its empty cells have no bytes', async (t) => {
  let turns = 0;
  let isWriting = true;
  const count = (): void => {
    turns += 1;
    if (isWriting) setImmediate(count);
  };
  const written: string[] = [];
  setImmediate(count);
  const slices = wideSlices(CONTEXT, sparseRecords(), (names) => wideSheet(names, false, () => {}));
  for await (const slice of slices) written.push(slice.toString());
  isWriting = false;
  t.ok(turns >= 3, `${turns} turns of the event loop for two million cells`);
  const cells = written.join('').match(/<v>/g)?.length;
  t.equal(cells, DAYS + DAYS + PRICES - 1, 'the days, and each value');
});
