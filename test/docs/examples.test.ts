import { readFileSync } from 'node:fs';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { recordExamples } from '../support/prices/examples.ts';

const FILE = new URL('../../src/contract/openapi/examples.json', import.meta.url);

t.test('the examples of the document are what a freshly seeded service answers', async (t) => {
  const recorded = await recordExamples(await serviceOn(t, await seededDatabase(t)));
  t.same(JSON.parse(readFileSync(FILE, 'utf8')), recorded, 'else: npm run generate');
});
