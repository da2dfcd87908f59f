import t from 'tap';
import { ClientDisconnected, RequestWork } from '../../src/http/work.ts';

t.test('each client who leaves has a reason of its own, without a stack', async (t) => {
  const reasons = [1, 2].map(() => {
    const work = new RequestWork(1_000);
    work.end(false);
    return work.signal.reason as ClientDisconnected;
  });
  // Kysely extends the stack of an abort reason: a shared error would grow without bound.
  t.not(reasons[0], reasons[1]);
  for (const reason of reasons) {
    t.type(reason, ClientDisconnected);
    t.equal(reason.stack, `ClientGone: ${reason.message}`);
  }
});
