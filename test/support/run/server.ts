import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { openEmbedded } from '../../../src/db/embedded/embedded.ts';
import { makeFolder } from './folders.ts';

/** A PostgreSQL server for one run of the tests. */
export interface TestServer {
  readonly kind: string;
  /** An account that may create databases. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Settings for speed: the data need not survive a crash. */
const THROWAWAY = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  // Several test files share it, each with several services.
  max_connections: '300',
};
const IMAGE = 'postgres:18';

const engineAddress = (): string =>
  process.env['DOCKER_HOST'] ??
  (existsSync('/var/run/docker.sock') ? 'unix:///var/run/docker.sock' : '');

/** True if a container engine answers within a second. */
function engineAnswers(address: string): Promise<boolean> {
  const url = address === '' ? null : new URL(address);
  if (!url) return Promise.resolve(false);
  const where =
    url.protocol === 'unix:'
      ? { socketPath: url.pathname }
      : { host: url.hostname, port: url.port || '2375' };
  return new Promise((resolve) => {
    const ping = request({ ...where, path: '/_ping', timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.on('timeout', () => ping.destroy());
    ping.on('close', () => resolve(false));
    ping.on('error', () => resolve(false));
    ping.end();
  });
}

type Settings = Readonly<Record<string, string>>;

async function containerServer(throwaway: Settings): Promise<TestServer> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const settings = Object.entries(throwaway).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const container = await new PostgreSqlContainer(IMAGE)
    .withCommand(['postgres', ...settings])
    .withStartupTimeout(120_000)
    .start();
  const stop = async (): Promise<void> => {
    await container.stop();
  };
  return { kind: `a container of ${IMAGE}`, url: container.getConnectionUri(), stop };
}

async function embeddedServer(settings: Settings): Promise<TestServer> {
  const folder = await makeFolder();
  const embedded = await openEmbedded(join(folder.path, 'data'), { settings });
  const stop = async (): Promise<void> => {
    await embedded.release();
    await folder.remove();
  };
  return { kind: 'an embedded PostgreSQL', url: embedded.url, stop };
}

/**
 * TEST_DATABASE_URL, else a container when an engine answers, else the embedded PostgreSQL.
 * @param autovacuum `off` for databases that live for seconds
 */
export async function startServer(autovacuum: 'on' | 'off' = 'on'): Promise<TestServer> {
  const settings = { ...THROWAWAY, autovacuum };
  const url = process.env['TEST_DATABASE_URL'];
  if (url) return { kind: 'TEST_DATABASE_URL', url, stop: async () => {} };
  if (await engineAnswers(engineAddress())) {
    try {
      return await containerServer(settings);
    } catch (error) {
      console.log(`# no container of ${IMAGE}: ${(error as Error).message.split('\n')[0]}`);
    }
  }
  return embeddedServer(settings);
}
