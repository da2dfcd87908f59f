import { readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { seededDatabase } from './support/database.ts';
import { madeExamples } from './support/examples.ts';
import { serviceOn } from './support/service.ts';

const FILE = new URL('../src/contract/examples.json', import.meta.url);

// UPDATE_EXAMPLES=1 writes the file again, after a change of the sample data or of the answers.
t.test('the examples of the document are what a freshly seeded service answers', async (t) => {
  const made = await madeExamples(await serviceOn(t, await seededDatabase(t)));
  const text = `${JSON.stringify(made, null, 1)}\n`;
  if (process.env['UPDATE_EXAMPLES'] === '1') writeFileSync(FILE, text);
  t.same(JSON.parse(readFileSync(FILE, 'utf8')), made);
});
