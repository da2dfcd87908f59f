import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { blockOf } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { freePort, senderOn, subscribe } from './support.ts';

const PAGE = 'docs/webhooks.md';

/** The part that the page leaves to its reader: keeps the address, and prints the changes. */
const NODE_STORE = `
let address = null;
async function storedAddress() { return address; }
async function store(changes, next) {
  address = next;
  for (const { seq } of changes) console.log(seq);
}`;

const PYTHON_STORE = `
address = None
def stored_address():
    return address
def store(changes, following):
    global address
    address = following
    for each in changes:
        print(each["seq"], flush=True)
`;

const folder = t.testdir();

/** The receivers of the page, with their storage, as commands. */
const PROGRAMS: Readonly<Record<string, (port: number) => readonly string[]>> = {
  node: (port) => {
    const path = join(folder, 'receiver.mjs');
    writeFileSync(path, blockOf(PAGE, 'js').replace('8080', String(port)) + NODE_STORE);
    return [process.execPath, path];
  },
  python: (port) => [
    ...['python3', '-c'],
    PYTHON_STORE + blockOf(PAGE, 'python').replace('8080', String(port)),
  ],
};

for (const [name, program] of Object.entries(PROGRAMS)) {
  t.test(`the receiver in ${name} of the page verifies messages and reads the feed`, async (t) => {
    const database = await testDatabase(t);
    await writeMinimalData(database.pool);
    const service = await serviceOn(t, database);
    const bell = senderOn(t, database, { publicUrl: await addressOf(service.app) });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const filter = { markets: ['copper', 'nickel'], operations: ['published'] };
    const { secret } = await subscribe(database, url, filter);
    const [command = '', ...args] = program(port);
    const env = { ...process.env, WEBHOOK_SECRET: secret, COMMODITY_PRICES_KEY: service.key };
    const child: ChildProcess = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    t.teardown(() => child.kill('SIGKILL'));
    let printed = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    /** The status of an own request. */
    const post = (stamp: number, body = '{"type":"webhook.test","data":{}}', key = secret) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: {
          'webhook-id': 'msg_1',
          'webhook-timestamp': String(Math.floor(stamp / 1_000)),
          'webhook-signature': `v1,other ${new Webhook(key).sign('msg_1', new Date(stamp), body)}`,
        },
      }).then(({ status }) => status);
    await until('it listens', () =>
      post(Date.now()).then(
        (status) => status === 204,
        () => false,
      ),
    );
    t.equal(await post(Date.now() - 400_000), 400, 'an old message is refused');
    t.equal(await post(Date.now(), '{}', `whsec_${'A'.repeat(43)}=`), 400, 'another secret is too');
    const copper = { price_id: "(select id from price where code = 'T-3')" };
    await inRevision(database.pool, insertOf('series', pointRow()));
    await bell.settle();
    await inRevision(database.pool, insertOf('series', pointRow(copper)));
    await bell.settle();
    const { rows } = await database.pool.query('select distinct outcome from webhook_message');
    t.same(rows, [{ outcome: 'delivered' }]);
    const stored = () => printed.match(/^\w+\.\d+$/gm) ?? [];
    await until('both changes are stored', () => stored().length === 2);
  });
}
