import { execFile } from 'node:child_process';
import { cp, readdir, symlink, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { startCluster } from '../scripts/cluster.ts';
import { reportedLoads } from './cluster/loads.ts';
import { lostCommits } from './cluster/lost-commits.ts';
import {
  cpuPerRequest,
  equalAnswers,
  failures,
  monotonic,
  upgrade,
  visibility,
} from './cluster/points.ts';
import type { ClusterContext, Counts } from './cluster/shared.ts';

const HELP = `npm run test:cluster -- [options]

Starts a cluster on this machine and checks its guarantees. Runs as root, and installs missing
Debian packages: etcd-server, haproxy, patroni, postgresql.

  --quick      a tenth of the requests and failovers
  --only 1,3   only these points of docs/cluster.md
  -h, --help   this text

The exit code is 0 if all points passed.
`;

const FULL: Counts = {
  requests: 10_000,
  monotonic: 100_000,
  commits: 200,
  failovers: 20,
  random: 1_000,
  cpuRequests: 6_000,
  seconds: 20,
};
const QUICK: Counts = {
  requests: 600,
  monotonic: 2_000,
  commits: 40,
  failovers: 2,
  random: 100,
  cpuRequests: 800,
  seconds: 5,
};

const POINTS: Readonly<Record<string, (context: ClusterContext) => Promise<void>>> = {
  '1': failures,
  '2': monotonic,
  '3': visibility,
  '4': cpuPerRequest,
  '5': reportedLoads,
  '6': lostCommits,
  '8': equalAnswers,
  // Runs last, because it migrates the schema.
  '7': upgrade,
};

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LEFT_OUT = new Set(['node_modules', '.git', '.data', 'bench', 'test']);

const MIGRATION = `import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql\`alter table load_batch add column host text not null default 'unknown'\`.execute(db);
}
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    only: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const counts = values.quick ? QUICK : FULL;
const chosen = values.only?.split(',') ?? Object.keys(POINTS);

const say = (text: string): void => console.log(`# ${text}`);
const tally = { passed: 0, failed: 0 };

const run: ClusterContext['run'] = async (folder, url, ...args) => {
  const options = { cwd: folder || ROOT, env: { ...process.env, DATABASE_URL: url } };
  return (await promisify(execFile)(process.execPath, ['src/cli/main.ts', ...args], options))
    .stdout;
};

say(`${cpus().length} cores, ${values.quick ? 'quick' : 'full'} counts`);
const cluster = await startCluster(
  {
    RATE_PER_MINUTE: '0',
    CONCURRENT_MAX: '0',
    LOG_LEVEL: 'warn',
  },
  say,
);
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => void cluster.stop().then(() => process.exit(130)));
}
try {
  const create = ['keys', 'create', '--name', 'test', '--scope', 'prices:*', '--json'];
  const { key } = JSON.parse(await run('', cluster.primaryUrl, ...create)) as { key: string };
  const context: ClusterContext = {
    cluster,
    target: { port: cluster.port, key },
    counts,
    report: (name, figure, isMet) => {
      tally[isMet ? 'passed' : 'failed'] += 1;
      console.log(`${isMet ? 'ok' : 'not ok'} ${name}: ${figure}`);
    },
    note: (text) => console.log(`#   ${text}`),
    run,
    nextVersion: async () => {
      const folder = join(cluster.folder, 'next');
      for (const name of await readdir(ROOT)) {
        if (!LEFT_OUT.has(name))
          await cp(join(ROOT, name), join(folder, name), { recursive: true });
      }
      await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      await writeFile(join(folder, 'migrations/9999-next.ts'), MIGRATION);
      return folder;
    },
  };
  for (const [name, point] of Object.entries(POINTS)) {
    if (!chosen.includes(name)) continue;
    try {
      await point(context);
    } catch (error) {
      context.report(name, `the point failed: ${(error as Error).message}`, false);
      // The points after it would measure a broken cluster.
      break;
    }
  }
} finally {
  await cluster.stop();
}
console.log(`${tally.passed} passed, ${tally.failed} failed`);
// A point that failed midway may have left clients.
process.exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0);
