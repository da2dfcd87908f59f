import { randomOf } from './conversion/support.ts';
import { killWorld, type Moment, VICTIMS } from './ingest/killed/kill-moments.ts';

/*
 * `npm run test:kill -- [moments] [seed]`: kills the loader, its session and the server at random
 * moments of a load, and looks each time whether the load was done whole or not at all.
 */
const [moments = 60, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);

const world = await killWorld();
const done: Moment[] = [];
try {
  const random = randomOf(seed);
  for (let at = 0; at < moments; at += 1) {
    const victim = VICTIMS[at % VICTIMS.length] ?? 'loader';
    const moment = await world.kill(victim, random() * world.loadMs);
    done.push(moment);
    const { afterMs, found, converged, broken } = moment;
    const ms = afterMs.toFixed(0).padStart(5);
    console.log(`${victim.padEnd(8)} after ${ms} ms: ${found}, ${converged ? 'converged' : 'NOT'}`);
    for (const rule of broken) console.log(`  broken: ${rule}`);
  }
} finally {
  await world.close();
}
const count = (is: (moment: Moment) => boolean): number => done.filter(is).length;
const failed = count(
  ({ found, converged, broken }) => found === 'other' || !converged || broken.length > 0,
);
console.log(
  `seed ${seed} · a load takes ${world.loadMs.toFixed(0)} ms · ` +
    `${VICTIMS.map((each) => `${each} ${count(({ victim }) => victim === each)}`).join(', ')} · ` +
    `before ${count(({ found }) => found === 'before')}, ` +
    `after ${count(({ found }) => found === 'after')}`,
);
console.log(`${done.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
