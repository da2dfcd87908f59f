import t from 'tap';
import { randomOf } from '../../conversion/support.ts';
import { killWorld, VICTIMS } from './kill-moments.ts';

t.test(
  'whichever process is killed at whatever moment, a load is complete or has no effect',
  async (t) => {
    const world = await killWorld();
    t.teardown(() => world.close());
    const random = randomOf(20_261_122);
    for (const victim of [...VICTIMS, 'loader'] as const) {
      const { found, converged, broken } = await world.kill(victim, random() * world.loadMs);
      t.not(found, 'other', `the ${victim} was killed`);
      t.ok(converged, 'and running it again leads to the same content');
      t.same(broken, [], 'in which no rule is broken');
    }
  },
);
