import { python } from '../../support/process/python.ts';
import { fault } from '../../support/run/faults.ts';
import {
  CALLERS,
  type ClientCall,
  callsAgainstUnreliableServer,
  SECONDS,
  TIMEOUT,
} from './unreliable-server.ts';

/** Runs calls in threads, each for its own code, and prints their outcomes. */
const PROGRAM = `
import itertools, json, threading, time
import commodity_prices as cp

numbers, calls, end = itertools.count(), [], time.monotonic() + ${SECONDS}

def call():
    while time.monotonic() < end:
        code = f"CALL-{next(numbers)}"
        begun = time.monotonic()
        try:
            found = cp.prices("nickel", codes=[code], timeout=${TIMEOUT})
            got = [each["code"] for each in found]
        except cp.PricesError as error:
            got = str(error)
        calls.append([code, got, time.monotonic() - begun])

threads = [threading.Thread(target=call) for _ in range(${CALLERS})]
for each in threads: each.start()
for each in threads: each.join()
print(json.dumps(calls))`;

fault(
  'F61',
  'the Python client with a server that randomly answers 429, 503 and 304, cuts connections ' +
    'and stops responding',
  'no call lost or doubled; at most 4 attempts, none before Retry-After; none after its ' +
    'deadline',
  (t) =>
    callsAgainstUnreliableServer(t, async (url) => {
      const env = { COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: 'key' };
      const ran = await python(PROGRAM, env, { timeout: (SECONDS + 60) * 1_000 });
      t.equal(ran.stderr, '');
      return JSON.parse(ran.stdout) as readonly ClientCall[];
    }),
);
