import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { seededDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { PLAIN_ENV } from '../support/process/plain-env.ts';

const FOLDER = fileURLToPath(new URL('../client/', import.meta.url));
const OPENAPI = fileURLToPath(new URL('../../openapi.yaml', import.meta.url));

/** Runs a program in the folder of the client; its output is in the error when it fails. */
async function run(file: string, args: string[], env: Record<string, string> = {}) {
  const options = { cwd: FOLDER, env: { ...PLAIN_ENV, ...env }, maxBuffer: 16_777_216 };
  try {
    return (await promisify(execFile)(file, args, options)).stdout;
  } catch (error) {
    const { message, stdout } = error as Error & { stdout: string };
    throw new Error(`${message}\n${stdout}`);
  }
}

const node = (script: string, ...args: string[]) => run(process.execPath, [script, ...args]);

t.test('a client generated from openapi.yaml type-checks and asks every market', async (t) => {
  await run('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']);
  await node('node_modules/openapi-typescript/bin/cli.js', OPENAPI, '--output', 'schema.d.ts');
  await node('node_modules/typescript/bin/tsc', '--project', '.');

  const service = await serviceOn(t, await seededDatabase(t));
  const address = await addressOf(service.app);
  // The client asks once how it is, and before its first look the service cannot say "ok".
  await until('it is ready', async () => (await fetch(`${address}/ready`)).status === 200);
  const settings = { SERVICE_URL: address, SERVICE_KEY: service.key };
  const { markets, health, reports } = JSON.parse(
    await run(process.execPath, ['client.ts'], settings),
  );
  t.equal(health.status, 'ok');
  t.same(
    markets.map((each: { slug: string }) => each.slug),
    MARKETS.map((each) => each.slug),
  );
  t.ok(markets.every((each: { authorized: boolean }) => each.authorized));
  t.same(
    reports.map((each: { market: string }) => each.market),
    MARKETS.map((each) => each.slug),
  );
  for (const [index, { market, count, codes, values, points, warnings }] of reports.entries()) {
    t.ok(count > 0 && codes.length === count, `${market} answered`);
    t.ok(codes.every((code: string) => code.startsWith(`CP-${MARKETS[index]?.prefix}-`)));
    t.equal(values.length, 1, 'one value was asked for, and one came');
    t.type(values[0], 'string');
    t.ok(points > 0, `${market} has points`);
    t.same(warnings, []);
  }
});
