import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { compareTwins } from './compare.ts';

t.test(
  'the book answers byte for byte what the database answers, after every commit',
  async (t) => {
    const { answers, misses, repeats, refreshes, builds } = await compareTwins(t, {
      seed: 20_260_105,
    });
    t.ok(answers > 900, `${answers} answers came from the book`);
    t.equal(misses, 0);
    t.ok(repeats > 50, `${repeats} were put together as before`);
    t.ok(refreshes >= 20, `${refreshes} refreshes`);
    t.equal(builds, MARKETS.length, 'no market was read whole again');
  },
);
