import t from 'tap';
import { lacks } from '../../src/db/candidate.ts';
import { Servers } from '../../src/db/servers.ts';

t.test('the others are those that are not in use, in their order', async (t) => {
  const servers = new Servers(['one', 'two', 'three']);
  t.equal(servers.current, 'one');
  t.same(servers.others, ['two', 'three']);
  servers.use('two');
  t.equal(servers.current, 'two');
  t.same(servers.others, ['one', 'three']);
  t.throws(() => new Servers([]), { message: /at least one/ });
});

t.test('a server lacks what another has told of, unless its data are others', async (t) => {
  const told = { epoch: 'a', revision: '10' };
  t.ok(lacks({ epoch: 'a', revision: '9' }, told));
  t.ok(lacks(null, told), 'without the tables');
  t.notOk(lacks({ epoch: 'a', revision: '10' }, told));
  t.notOk(lacks({ epoch: 'a', revision: '100' }, told));
  t.notOk(lacks({ epoch: 'b', revision: '1' }, told), 'an epoch that was renewed');
  t.notOk(lacks({ epoch: 'a', revision: '1' }, null), 'nothing was told');
});
