import t from 'tap';
import { Problem } from '../../src/errors.ts';
import { CauseLimit } from '../../src/http/hooks/log-lines.ts';

const failed = (message: string, more: object = {}) => Object.assign(new Error(message), more);
const refusal = (code: 'auth_unavailable' | 'database_unavailable' | 'overloaded', cause: Error) =>
  new Problem(code, 'It is away', { cause });

/** A cause limit with a manual clock. */
function byHand() {
  const clock = { ms: 0 };
  const causes = new CauseLimit(() => clock.ms);
  return { clock, tell: (problem: Problem) => causes.shouldLog(problem) };
}

t.test('each cause of an outage is logged once a second, and hides no other', async (t) => {
  const { clock, tell } = byHand();
  const refused = () => failed('it', { code: 'ECONNREFUSED' });
  const kinds = [
    () => refusal('auth_unavailable', failed('the key set failed a moment ago')),
    () => refusal('auth_unavailable', refused()),
    () => refusal('auth_unavailable', failed('fetch failed', { cause: refused() })),
    () => refusal('auth_unavailable', refusal('database_unavailable', refused())),
    () => refusal('database_unavailable', refused()),
    () => refusal('database_unavailable', failed('it', { code: '53300' })),
  ];
  for (const at of [0, 1_000, 5_500]) {
    clock.ms = at;
    for (const kind of kinds) t.equal(tell(kind()), true, JSON.stringify(kind()));
    clock.ms = at + 999;
    for (const kind of kinds) t.equal(tell(kind()), false, JSON.stringify(kind()));
  }
});

t.test('causes that all differ are logged a few times a second', async (t) => {
  const { clock, tell } = byHand();
  for (const at of [0, 1_000]) {
    clock.ms = at;
    const all = Array.from({ length: 100 }, (_, each) => failed(`number ${each}`));
    const logged = all.filter((cause) => tell(refusal('database_unavailable', cause)));
    t.equal(logged.length, 8);
  }
});

t.test('the cause of an error that is no outage is logged each time', async (t) => {
  const { tell } = byHand();
  for (let time = 0; time < 20; time += 1) t.ok(tell(refusal('overloaded', failed('full'))));
});

t.test('an error that is its own cause has a kind', async (t) => {
  const { tell } = byHand();
  const error = failed('round');
  error.cause = error;
  t.ok(tell(refusal('database_unavailable', error)));
});
