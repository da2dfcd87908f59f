import { readFileSync } from 'node:fs';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { differenceOf } from './recompute.ts';
import { calculate, resultOf } from './support.ts';

const text = readFileSync(new URL('../../docs/calculations.md', import.meta.url), 'utf8');
const service = await serviceOn(t, await seededDatabase(t));

/** The figure of a result with the decimals that it was rounded to. */
const figureOf = ({ value, unit, rounding }: Record<string, string>): string => {
  const decimals = Number(/, (\d+) decimals/.exec(rounding ?? '')?.[1]);
  const [whole = '', fraction = ''] = (value ?? '').split('.');
  return `${whole}.${fraction.padEnd(decimals, '0')} ${unit}`;
};

const asTexts = (body: object): object => ({ ...body, options: { decimalsAsText: true } });

t.test('each request of the page has its result, recomputed from the receipt', async (t) => {
  const requests = [...text.matchAll(/```json\n(\{\n.*?\n\})\n```\n\nResult: \*\*([^*]+)\*\*/gs)];
  t.equal(requests.length, 10);
  for (const [, body = '', figure = ''] of requests) {
    const result = resultOf(await calculate(service, asTexts(JSON.parse(body))));
    t.equal(figureOf(result), figure, body);
    // The recomputation does not know `step`.
    if (!body.includes('step(')) t.equal(differenceOf(result), null, body);
  }
});

/** `nickel 16250 USD/t` as a member of `inputs`. */
const inputOf = (words: string): [string, object] => {
  const [name = '', value, unit = '1'] = words.trim().split(' ');
  return [name, { value, unit }];
};

t.test('each figure of the table is the result of its formula', async (t) => {
  const [, table = ''] = text.split('| Formula | Inputs | Result |\n|---|---|---|\n');
  const rows = [...table.matchAll(/^\| `([^`]+)` \| ([^|]+) \| ([\d.]+) \|$/gm)];
  t.equal(rows.length, 14);
  for (const [, formula = '', inputs = '', figure = ''] of rows) {
    const body = {
      formula,
      inputs: Object.fromEntries(inputs.split(',').map(inputOf)),
      result: { decimals: 2 },
    };
    const result = resultOf(await calculate(service, asTexts(body)));
    t.equal(figureOf(result).split(' ')[0], figure, formula);
    t.equal(differenceOf(result), null, formula);
  }
});
