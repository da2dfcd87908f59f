import { MARKETS } from '../../../src/catalog/markets.ts';
import { HS256, REQUEST_ID, SECRET } from '../../support/auth/auth-app.ts';
import { altered, forgedInside } from '../../support/auth/forged-tokens.ts';
import { goodClaims, secretToken } from '../../support/auth/tokens.ts';
import { testDatabase } from '../../support/database/database.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { counted, WITH_METRICS } from '../../support/http/metrics.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { codeOf, send } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';

const ASK = { path: '/v3/me' };

const REFUSED = { name: 'prices_refusals_total', labels: { code: /^invalid_token$/ } };
const CHECKS = { name: 'prices_revision_check_requests_total', labels: {} };

fault(
  'F28b',
  'forged tokens sent to a running service, with and without its database',
  'each a 401 with the same bytes; /metrics counts each by its code; none causes a database ' +
    'query',
  async (t) => {
    const database = await testDatabase(t);
    const proxy = await tcpProxyTo(t, database.url);
    const service = await startServiceProcess(
      t,
      { ...database, url: proxy.url },
      {
        ...WITH_METRICS,
        JWT_SECRET: SECRET,
        JWT_ISSUER: HS256.JWT_ISSUER,
        JWT_AUDIENCE: HS256.JWT_AUDIENCE,
      },
    );
    const numbers = async () => ({
      refused: await counted(service, REFUSED),
      checks: await counted(service, CHECKS),
    });
    const forgeries = Object.values({ ...forgedInside(), ...altered() });
    const bodies = new Set<string>();
    const forge = async (): Promise<void> => {
      const before = await numbers();
      const begun = performance.now();
      for (const token of forgeries) {
        const headers = { authorization: `Bearer ${token}`, 'x-request-id': REQUEST_ID };
        const answer = await send(false, service, { ...ASK, headers });
        bodies.add(`${answer.status} ${answer.headers['www-authenticate']} ${answer.text}`);
      }
      const after = await numbers();
      t.ok(before.checks > 0, 'revision checks are counted');
      t.equal(after.refused - before.refused, forgeries.length, 'each is counted');
      const checks = after.checks - before.checks;
      // Each of the two scrapes of metrics after it checks the revision too.
      const own = 7 + Math.floor((2 * (performance.now() - begun)) / 1_000);
      t.ok(forgeries.length > 2 * own, 'a check for each would be more');
      t.ok(checks <= own, `${checks} checks; the service makes about one a second by itself`);
    };
    const good = secretToken(goodClaims());
    t.equal((await send(false, { ...service, key: good }, ASK)).status, 200);
    await until('the price book has read each market', async () => {
      return (await numbers()).checks > MARKETS.length;
    });
    await forge();
    proxy.cut(true);
    await until('the database is away', async () => {
      return codeOf(await send(false, service, ASK)) === 'auth_unavailable';
    });
    await forge();
    t.equal(bodies.size, 1, [...bodies].join('\n'));
    t.match([...bodies][0], /^401 .*"code":"invalid_token"/);
    return {
      forgeries: 2 * forgeries.length,
      'counted as invalid_token': 2 * forgeries.length,
    };
  },
);
