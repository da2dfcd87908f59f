import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PLAIN_ENV } from '../../support/process/plain-env.ts';
import { fault } from '../../support/run/faults.ts';
import {
  CALLERS,
  type ClientCall,
  callsAgainstUnreliableServer,
  SECONDS,
  TIMEOUT,
} from './unreliable-server.ts';

const CLIENT = new URL('../../../clients/typescript/client.js', import.meta.url).href;

/** Runs calls concurrently, each for its own code, and prints their outcomes. */
const PROGRAM = `
import { createClient, PricesError } from '${CLIENT}';
const client = createClient({ timeoutMs: ${TIMEOUT * 1_000} });
const end = performance.now() + ${SECONDS * 1_000};
const calls = [];
let number = 0;
await Promise.all(Array.from({ length: ${CALLERS} }, async () => {
  while (performance.now() < end) {
    const code = 'CALL-' + number++;
    const begun = performance.now();
    const got = await client.prices('nickel', { filters: { codes: [code] } }).then(
      ({ data }) => data.map((each) => each.code),
      (error) => {
        if (!(error instanceof PricesError)) throw error;
        return error.message;
      },
    );
    calls.push([code, got, (performance.now() - begun) / 1_000]);
  }
}));
console.log(JSON.stringify(calls));`;

fault(
  'F61b',
  'the TypeScript client with a server that randomly answers 429, 503 and 304, cuts ' +
    'connections and stops responding',
  'no call lost or doubled; at most 4 attempts, none before Retry-After; none after its ' +
    'deadline',
  (t) =>
    callsAgainstUnreliableServer(t, async (url) => {
      const env = { ...PLAIN_ENV, COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: 'key' };
      const words = ['-u', 'NODE_OPTIONS', process.execPath, '--input-type=module'];
      const ran = await promisify(execFile)('env', [...words, '--eval', PROGRAM], {
        env,
        maxBuffer: 64 * 1024 * 1024,
        timeout: (SECONDS + 60) * 1_000,
      });
      t.equal(ran.stderr, '');
      return JSON.parse(ran.stdout) as readonly ClientCall[];
    }),
);
