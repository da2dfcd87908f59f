import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportArchive } from '../../archive/export.ts';
import { importArchive } from '../../archive/import.ts';
import type { Config } from '../../config.ts';
import type { Client } from '../../db/client.ts';
import { migrateUp } from '../../db/migrate.ts';
import { newestRevision } from '../../db/revisions.ts';
import { RULES, verify } from '../../verify/verify.ts';
import { openWriter } from '../database.ts';
import { questionsOn } from './answers.ts';
import { type Compared, compare, factsOf } from './compare.ts';
import { MovingDataError } from './moving.ts';
import type { DumpTools } from './tools.ts';

/** How the data is carried: by the tools of PostgreSQL, or by an export. */
export type Way = { readonly tools: DumpTools } | 'export';

export interface DrillRequest {
  readonly way: Way;
  /** The address of the original. */
  readonly url: string;
  /** Any database of the server that the copy is made on, with an account that may make one. */
  readonly server: string;
  readonly keep: boolean;
  readonly signal: AbortSignal;
  onStep(name: string): void;
}

export interface Step {
  readonly step: string;
  readonly seconds: number;
}

export interface DrillReport {
  /** The newest revision of the backup. */
  readonly revision: string;
  readonly bytes: number | null;
  readonly steps: readonly Step[];
  readonly compared: readonly Compared[];
  /** Names of rules that the restored data breaks. */
  readonly broken: readonly string[];
  /** The restored database, if it was kept. */
  readonly kept: string | null;
}

const siblingOf = (url: string, database: string): string => {
  const sibling = new URL(url);
  sibling.pathname = `/${database}`;
  return sibling.href;
};

/** Runs a step and notes how long it took. */
function stopwatch(onStep: (name: string) => void) {
  const steps: Step[] = [];
  const timed = async <T>(step: string, work: () => Promise<T>): Promise<T> => {
    onStep(step);
    const began = performance.now();
    const result = await work();
    steps.push({ step, seconds: Math.round(performance.now() - began) / 1000 });
    return result;
  };
  return { steps, timed };
}

type Timed = ReturnType<typeof stopwatch>['timed'];

/** Writes a backup into a folder; returns its size, when it is one file. */
async function backUp(timed: Timed, client: Client, request: DrillRequest, folder: string) {
  const { way, url, signal } = request;
  if (way === 'export') {
    const carried = { folder: join(folder, 'export'), format: 'csv', markets: null } as const;
    const { files } = await timed('export', () => exportArchive(client, { ...carried, signal }));
    return files.reduce((sum, each) => sum + each.bytes, 0);
  }
  const file = join(folder, 'prices.dump');
  await timed('dump', () => way.tools.dump(url, file));
  return (await stat(file)).size;
}

/** Fills the empty database with the backup. */
async function bringBack(
  timed: Timed,
  copy: Client,
  copyUrl: string,
  { way, signal }: DrillRequest,
  folder: string,
) {
  if (way !== 'export') {
    await timed('restore', () => way.tools.restore(copyUrl, join(folder, 'prices.dump')));
    return;
  }
  await timed('import', async () => {
    await migrateUp(copy.db);
    await importArchive(copy, { folder: join(folder, 'export'), signal });
  });
}

/** Looks at the copy as a reader would, and beside the original. */
async function lookAtBoth(
  timed: Timed,
  original: Client,
  copy: Client,
  config: Config,
  signal: AbortSignal,
) {
  const { rules } = await timed('verify the copy', () => verify(copy, RULES, () => {}, signal));
  const questions = await questionsOn(copy);
  const [was, is] = await timed('compare', () =>
    Promise.all([original, copy].map((each) => factsOf(each, config, questions, signal))),
  );
  return {
    broken: rules.filter(({ count }) => count > 0).map(({ rule }) => rule),
    compared: compare(was ?? new Map(), is ?? new Map()),
  };
}

/**
 * Backs the data up, restores the backup into a database of its own, and compares the two. The
 * original is only read; the copy goes afterwards, unless it is to be kept.
 * @throws MovingDataError when data was written meanwhile
 */
export async function drill(
  original: Client,
  config: Config,
  request: DrillRequest,
): Promise<DrillReport> {
  const { server, keep, signal } = request;
  const folder = await mkdtemp(join(tmpdir(), 'prices-drill-'));
  const name = `prices_drill_${randomBytes(4).toString('hex')}`;
  const admin = openWriter(server, config, () => {});
  const { steps, timed } = stopwatch(request.onStep);
  let isDone = false;
  try {
    await admin.pool.query(`create database ${name} template template0`);
    const copyUrl = siblingOf(server, name);
    const copy = openWriter(copyUrl, config, () => {});
    try {
      const bytes = await backUp(timed, original, request, folder);
      await bringBack(timed, copy, copyUrl, request, folder);
      const { epoch, revision } = await newestRevision(copy.db);
      const found = await lookAtBoth(timed, original, copy, config, signal);
      if ((await newestRevision(original.db)).revision !== revision) {
        throw new MovingDataError(
          'data was written during the drill, so the copy is of an earlier state: run it again ' +
            'when nothing is loaded',
        );
      }
      isDone = true;
      return { revision: `${epoch}.${revision}`, bytes, steps, ...found, kept: keep ? name : null };
    } finally {
      await copy.close();
    }
  } finally {
    if (!(keep && isDone)) {
      await admin.pool.query(`drop database if exists ${name} with (force)`).catch(() => {});
    }
    await admin.close();
    await rm(folder, { recursive: true, force: true });
  }
}
