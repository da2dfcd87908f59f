import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { startService } from '../support/process/programs.ts';

t.test('an unknown source of rates is logged, with the known ones', async (t) => {
  const { url } = await seededDatabase(t);
  const service = startService(t, { DATABASE_URL: url, FX_SOURCE: 'NOBODY' });
  const log = await service.until('stderr', 'FX_SOURCE');
  const line = log.split('\n').find((each) => each.includes('FX_SOURCE')) ?? '{}';
  t.match(JSON.parse(line), { level: 50, msg: /NOBODY, only ECB, FED, SAMPLE/ });
  service.child.kill('SIGTERM');
  t.equal(await service.ended, 0, 'and it runs all the same');
});
