import t from 'tap';
import { compareTwins } from './compare.ts';

t.test('a book that is too small for most answers the same', async (t) => {
  const env = { PRICE_BOOK_BYTES: '3000000' };
  const { answers, misses, builds } = await compareTwins(t, { seed: 7, env });
  t.ok(answers > 50, `${answers} answers came from the book`);
  t.ok(misses > 50, `${misses} were left to the database`);
  t.ok(builds > 1, `${builds} markets were read`);
});
