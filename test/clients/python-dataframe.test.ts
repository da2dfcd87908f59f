import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { PANDAS_PYTHON, python } from '../support/process/python.ts';

const PRICES = 250;
const POINTS = 260;
const TARGET_SECONDS = 1;

/** Prints the rows of the last of six calls, and the best wall and CPU time of one. */
const PROGRAM = `
import json, time
import commodity_prices as cp

client, walls, cpus = cp.Client(), [], []
for _ in range(6):
    wall, cpu = time.perf_counter(), time.process_time()
    frame = client.prices("${BULK_MARKET.slug}").df()
    walls.append(time.perf_counter() - wall)
    cpus.append(time.process_time() - cpu)
print(json.dumps({"rows": len(frame), "wall": min(walls), "cpu": min(cpus)}))`;

t.test('65,000 points become a DataFrame within a second', async (t) => {
  if (PANDAS_PYTHON === null) {
    t.comment('not run, as no python3 here has pandas');
    return;
  }
  const database = await testDatabase(t);
  await fill(database, { prices: PRICES, points: POINTS });
  const service = await serviceOn(t, database);
  const env = {
    COMMODITY_PRICES_URL: await addressOf(service.app),
    COMMODITY_PRICES_KEY: service.key,
  };
  const { stdout, stderr } = await python(PROGRAM, env, { file: PANDAS_PYTHON });
  t.equal(stderr, '');
  const { rows, wall, cpu } = JSON.parse(stdout);
  t.equal(rows, PRICES * POINTS);
  // Other tests run at the same time: the CPU time of the client is its own.
  t.ok(cpu <= TARGET_SECONDS, `${cpu} s of CPU`);
  console.log(`# ${rows} points: ${wall.toFixed(2)} s, ${cpu.toFixed(2)} s of them CPU`);
});
