import t from 'tap';
import { rememberingParser } from '../../src/plugins/json-body.ts';

t.test('bodies are remembered up to a number of bytes, those used last', async (t) => {
  const parse = rememberingParser(8);
  const body = (text: string) => Buffer.from(JSON.stringify({ text }));
  const [used, forgotten, long] = [body('used'), body('forgotten'), body('x'.repeat(3_000))];
  const values = [parse(used), parse(forgotten), parse(long)];
  t.same(values[0], { text: 'used' });
  t.not(parse(long), values[2], 'a long one never is');
  // Half a megabyte, and the one that is used again and again among them.
  for (let count = 0; count < 500; count += 1) {
    parse(body(String(count).padEnd(1_000)));
    t.equal(parse(used), values[0]);
  }
  t.not(parse(forgotten), values[1]);
  t.same(parse(forgotten), values[1]);
});
