import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { NODE_FLAGS } from '../../../src/std/program.ts';
import { testDatabase } from '../../support/database/database.ts';
import { startLoadThread } from '../../support/http/load-thread.ts';
import {
  peakGrowth,
  type ServiceProcess,
  startServiceProcess,
} from '../../support/http/service-process.ts';
import { RawConnection, until } from '../../support/http/sockets.ts';
import { type Figures, within } from '../../support/process/figures.ts';
import { HEAP_SAMPLER, heapOf } from '../../support/process/heap.ts';
import { agentOf, quantile, send, sendAll } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const database = await testDatabase(t, { seeded: true });

/** An odd number while a collection runs, which holds the event loop and is the test's own. */
let collections = 0;

/** Memory of a process after a collection of garbage, in MB. */
async function heldMemory(service: ServiceProcess): Promise<number> {
  collections += 1;
  await heapOf(service);
  collections += 1;
  return service.memory();
}

const ADDRESSES = [
  '/openapi.json',
  '/docs/static/swagger-ui-bundle.js',
  '/live',
  ...byLength<string[]>(
    [],
    [
      '/openapi.yaml',
      '/llms.txt',
      '/',
      '/docs',
      '/docs/',
      '/docs/json',
      '/docs/problems',
      '/docs/static/swagger-ui.css',
      '/docs/static/swagger-initializer.js',
      '/docs/static/favicon-32x32.png',
      '/docs/static/theme/theme.css',
      '/docs/static/nothing.js',
      '/nowhere',
      '/health',
      '/ready',
      '/v3/prices/health',
    ],
  ),
];

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;

const isLive = async (service: ServiceProcess): Promise<boolean> =>
  (await send(false, service, { path: '/live' })).status === 200;

/** Peak resources of a process during some work, and the latency of /live. */
async function watched(test: Test, service: ServiceProcess, work: () => Promise<void>) {
  const { pid = 0 } = service.running.child;
  const descriptors = async (): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;
  const before = await descriptors();
  const agent = agentOf(test, 1);
  let [longest, most, isOver] = [0, before, false];
  const watch = async (): Promise<void> => {
    while (!isOver) {
      const before = collections;
      const { status, ms } = await send(agent, service, { path: '/live' });
      test.equal(status, 200, '/live is answered');
      const isAlone = collections === before && before % 2 === 0;
      if (isAlone) longest = Math.max(longest, ms);
      most = Math.max(most, await descriptors());
      await pause(10);
    }
  };
  const grown = await peakGrowth(pid, async () => {
    const watching = watch();
    await work();
    isOver = true;
    await watching;
  });
  return { longest, grown, descriptors: most - before };
}

fault(
  'F51',
  '10 connections × 1,500 pipelined requests whose answers are not read, on each public ' +
    'address in turn',
  '/live ≤ 250 ms; ≤ 50 MB and ≤ 100 file descriptors more; recovered ≤ 2 s afterwards',
  async (t) => {
    const service = await startServiceProcess(t, database, HEAP_SAMPLER, NODE_FLAGS);
    let recovered = 0;
    let held = 0;
    // A service that has worked for a while has made each document.
    for (const path of ADDRESSES) await send(false, service, { path });
    await sendAll(
      t,
      service,
      Array.from({ length: byLength(1_000, 10_000) }, () => ({ path: '/live' })),
    );
    const warm = await service.memory();
    const before = await heldMemory(service);
    const seen = await watched(t, service, async () => {
      for (const path of ADDRESSES) {
        const connections = Array.from({ length: 10 }, () => new RawConnection(t, service.port));
        for (const { socket } of connections) {
          socket.pause();
          socket.write(get(path).repeat(1_500));
        }
        await pause(byLength(300, 2_000));
        held = Math.max(held, (await heldMemory(service)) - before);
        const left = performance.now();
        for (const { socket } of connections) socket.destroy();
        const asBefore = async (): Promise<boolean> =>
          (await send(false, service, { path })).status < 500;
        await until('the service answers as before', asBefore);
        recovered = Math.max(recovered, performance.now() - left);
      }
    });
    return {
      addresses: ADDRESSES.length,
      'longest /live': within(seen.longest, 250),
      'memory grew': within(before + seen.grown - warm, 50, 'MB'),
      'of it held after a collection': within(held, 50, 'MB'),
      'file descriptors': within(seen.descriptors, 100, 'descriptors'),
      'recovered after': within(recovered, 2_000),
    };
  },
);

/** Connections that ask for documents again and again: whole, known and compressed. */
async function documentLoops(test: Test, service: ServiceProcess, count: number) {
  const { headers } = await send(false, service, { path: '/openapi.json' });
  const kinds = ['', `If-None-Match: ${headers.etag}\r\n`, 'Accept-Encoding: br\r\n'];
  const loads = kinds.map((header) => {
    const [name = '', value = ''] = header.trim().split(': ');
    const ask = { path: '/openapi.json', headers: header === '' ? {} : { [name]: value } };
    return startLoadThread(test, service, ask);
  });
  for (const [at, load] of loads.entries()) {
    load.pace({ perSecond: Number.POSITIVE_INFINITY, lines: at === 0 ? count - 4 : 2 });
  }
  return loads;
}

fault(
  'F51b',
  'a closed loop of 8 connections on the documents: 200, 304, Brotli',
  'p99 of price requests ≤ 2 × that without the loop',
  async (t) => {
    const service = await startServiceProcess(t, database);
    const ask = { path: '/v3/prices/nickel', body: '{}' };
    const prices = startLoadThread(t, service, ask);
    const enough = byLength(20, 600);
    const sample = async () => {
      const from = prices.answers.length;
      await until('enough are answered', () => prices.answers.length >= from + enough);
      return prices.answers.slice(from);
    };
    prices.pace({ perSecond: byLength(20, 100), lines: 8 });
    await sample();
    const before = await sample();
    const loads = await documentLoops(t, service, 8);
    await until('documents come', () => loads.every(({ answers }) => answers.length > 20));
    const during = await sample();
    const documents = (await Promise.all(loads.map((load) => load.stop()))).flat();
    await prices.stop();
    t.ok(during.every(({ status }) => status === 200));
    t.same(
      documents.filter(({ status }) => status !== 200 && status !== 304),
      [],
    );
    return {
      documents: documents.length,
      'p99 without': `${quantile(before, 0.99).toFixed(1)} ms`,
      'p99 with': within(quantile(during, 0.99), 2 * quantile(before, 0.99)),
    };
  },
);

fault(
  'F52',
  '2,000 rejected senders of largest bodies whose last byte never arrives',
  '≤ 50 MB more memory; each sender gets its rejection and is disconnected; /live is answered',
  async (t) => {
    const service = await startServiceProcess(
      t,
      database,
      { FAILED_AUTH_PER_MINUTE: '0', ...HEAP_SAMPLER },
      NODE_FLAGS,
    );
    const count = byLength(100, 2_000);
    const head =
      'POST /v3/prices/nickel HTTP/1.1\r\nHost: test\r\nx-api-key: wrong\r\n' +
      'Content-Type: application/json\r\nContent-Length: 131072\r\n\r\n';
    const body = Buffer.alloc(131_071, ' ');
    let refused = 0;
    const send100 = async (): Promise<void> => {
      const connections = Array.from({ length: 100 }, () => new RawConnection(t, service.port));
      for (const { socket } of connections) {
        socket.write(head);
        socket.write(body);
      }
      await Promise.all(connections.map(({ closed }) => closed));
      refused += connections.filter(({ text }) => /^HTTP\/1\.1 401 /.test(text)).length;
    };
    // The first hundred take what the allocator keeps for the next ones.
    await send100();
    const warm = await service.memory();
    const before = await heldMemory(service);
    let held = 0;
    const seen = await watched(t, service, async () => {
      while (refused < count) {
        await send100();
        held = Math.max(held, (await heldMemory(service)) - before);
      }
    });
    return {
      senders: count,
      'without their rejection': within(count - refused, 0, 'answers'),
      'memory grew': within(before + seen.grown - warm, 50, 'MB'),
      'of it held after a collection': within(held, 50, 'MB'),
      'longest /live': `${Math.round(seen.longest)} ms`,
    };
  },
);

fault(
  'F52b',
  '1,900 rejected senders of largest bodies at once, of one network and of four',
  '≤ 64 MB more memory; each accepted sender gets its rejection and is disconnected',
  async (t) => {
    const service = await startServiceProcess(
      t,
      database,
      { CONNECTIONS_MAX: '2000', FAILED_AUTH_PER_MINUTE: '0' },
      NODE_FLAGS,
    );
    const head =
      'POST /v3/prices/nickel HTTP/1.1\r\nHost: test\r\nx-api-key: wrong\r\n' +
      'Content-Type: application/json\r\nContent-Length: 131072\r\n\r\n';
    const body = Buffer.alloc(131_071, ' ');
    const sendAtOnce = async (count: number, networks: number): Promise<number> => {
      const texts = Array.from({ length: count }, async (_, at) => {
        const localAddress = `127.0.0.${2 + (at % networks)}`;
        const socket = connect({ port: service.port, host: '127.0.0.1', localAddress });
        let text = '';
        socket.on('error', () => {});
        socket.on('data', (piece: Buffer) => {
          text += piece.toString('latin1');
        });
        socket.write(head);
        socket.write(body);
        await new Promise((resolve) => socket.once('close', resolve));
        return text;
      });
      return (await Promise.all(texts)).filter((text) => / (401|503) /.test(text)).length;
    };
    // The service has worked for a while.
    await sendAtOnce(100, 1);
    await sendAll(
      t,
      service,
      Array.from({ length: byLength(100, 1_000) }, () => ({ path: '/live' })),
    );
    const { pid = 0 } = service.running.child;
    let figures: Figures = {};
    for (const networks of [1, 4]) {
      let rejected = 0;
      const grown = await peakGrowth(pid, async () => {
        rejected = await sendAtOnce(byLength(400, 1_900), networks);
      });
      figures = {
        ...figures,
        [`rejected of ${networks}`]: rejected,
        [`memory grew by ${networks}`]: within(grown, 64, 'MB'),
      };
      t.ok(await isLive(service));
    }
    return figures;
  },
);

/** Lowers the limit of a process that runs, as `ulimit -n` does before one starts. */
const limitDescriptors = (pid: number, most: number): void => {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:${most}`]);
};

fault(
  'F53',
  'the limit of file descriptors is reached',
  'the service continues; it accepts and answers again ≤ 2 s after connections are closed',
  async (t) => {
    const service = await startServiceProcess(t, database);
    const { pid = 0 } = service.running.child;
    const used = (await readdir(`/proc/${pid}/fd`)).length;
    limitDescriptors(pid, used + 20);
    const connections = Array.from({ length: 60 }, () => new RawConnection(t, service.port));
    await until('some wait', async () => (await readdir(`/proc/${pid}/fd`)).length >= used + 19);
    await pause(byLength(200, 5_000));
    const left = performance.now();
    for (const { socket } of connections) socket.destroy();
    await until('the service answers', () => isLive(service));
    const again = performance.now() - left;
    const priced = { path: '/v3/prices/nickel', body: '{}' };
    const works = async (): Promise<boolean> => (await send(false, service, priced)).status === 200;
    await until('prices are answered', works);
    t.equal(service.running.child.exitCode, null);
    return {
      connections: connections.length,
      'accepts again after': within(again, 2_000),
      'prices after': within(performance.now() - left, 2_000),
    };
  },
);
