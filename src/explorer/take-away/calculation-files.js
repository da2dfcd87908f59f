// The files of a calculation: its CSV as the service answers it, and the chart of a series.
import { ask, ROOT } from '../api.js';
import { clockTime } from '../dates.js';
import { strokeOf } from '../series.js';
import { lineOfResults } from '../views/calculate/chart.js';
import { themeOf } from '../views/colours-of-chart.js';
import { pictureOf } from './picture.js';
import { save } from './save.js';

/** The names of the inputs in the name of a file. */
const nameOf = ({ inputs = {} }, ending) =>
  `calculation_${Object.keys(inputs).join('_').slice(0, 80) || 'result'}${ending}`;

/** Saves the CSV of the service. @returns a sentence about the saved file */
export async function saveCsv({ body }) {
  const text = JSON.stringify(body);
  const answer = await ask('v3/calculations', undefined, { body: text, accept: 'text/csv' });
  const file = await answer.blob();
  save(file, nameOf(body, '.csv'));
  return `Saved ${file.size} bytes at ${clockTime(new Date())}`;
}

/** Saves the chart of a series as PNG. @returns a sentence about it */
export async function savePicture({ body, answer }) {
  const { $metadata, data } = answer;
  const [{ formula }] = data;
  const prices = Object.entries(data.at(-1).inputs ?? {}).map(
    ([name, { code, name: full, value, unit, note, period }]) =>
      code
        ? `${name}: ${code} ${full}, ${period}`
        : `${name}: ${value} ${unit}${note ? `, ${note}` : ''}`,
  );
  const lines = [{ ...lineOfResults(data), ...strokeOf(0, false) }];
  const theme = themeOf(document.body, false);
  const notes = [
    ...prices,
    `Commodity Prices Service, ${ROOT.host}, revision ${$metadata.revision}`,
  ];
  const blob = await pictureOf(
    lines,
    { title: formula, notes },
    { theme, log: false, bands: false },
  );
  save(blob, nameOf(body, '.png'));
  return `Saved the picture at ${clockTime(new Date())}`;
}
