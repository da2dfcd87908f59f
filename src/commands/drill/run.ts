import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportArchive } from '../../archive/export.ts';
import { importArchive } from '../../archive/import.ts';
import type { Manifest } from '../../archive/manifest.ts';
import type { Config } from '../../config.ts';
import type { Client } from '../../db/client.ts';
import { migrateUp } from '../../db/migrate.ts';
import { newestRevision, wireText } from '../../db/revisions.ts';
import { RULES, verify } from '../../verify/verify.ts';
import { openWriter } from '../database.ts';
import { MovingDataError } from './moving.ts';
import type { DumpTools } from './tools.ts';

/** How the data is carried: by the tools of PostgreSQL, or by an export. */
export type Way = { readonly tools: DumpTools } | 'export';

interface DrillRequest {
  readonly way: Way;
  /** The address of the original. */
  readonly url: string;
  /** Any database of the server that the copy is made on, with an account that may make one. */
  readonly server: string;
  readonly keep: boolean;
  readonly signal: AbortSignal;
  onStep(name: string): void;
}

/** One table: its rows and the SHA-256 of its export, in the original and in the copy. */
interface Compared {
  readonly what: string;
  readonly original: string;
  readonly restored: string;
}

interface Step {
  readonly step: string;
  readonly seconds: number;
}

export interface DrillReport {
  /** The newest revision of the backup. */
  readonly revision: string;
  /** The size of the backup. */
  readonly bytes: number;
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

/** Exports everything as CSV. Files of equal data have equal bytes, on every server. */
const exportTo = (client: Client, folder: string, signal: AbortSignal): Promise<Manifest> =>
  exportArchive(client, { folder, format: 'csv', markets: null, signal });

/** Writes a dump, unless the export of the original is the backup; returns its size. */
async function backUp(
  timed: Timed,
  { way, url }: DrillRequest,
  file: string,
  exported: Manifest,
): Promise<number> {
  if (way === 'export') return exported.files.reduce((sum, each) => sum + each.bytes, 0);
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

/** The tables of two exports side by side. */
function compare(original: Manifest, restored: Manifest): Compared[] {
  const told = ({ files }: Manifest, table: string): string => {
    const file = files.find((each) => each.table === table);
    return file === undefined ? 'none' : `${file.rows} rows, ${file.sha256}`;
  };
  return original.files.map(({ table }) => ({
    what: table,
    original: told(original, table),
    restored: told(restored, table),
  }));
}

/**
 * Backs the data up, restores the backup into a database of its own, and compares the exports of
 * both, past and ledger included. The original is only read; the copy is dropped afterwards, unless
 * it is to be kept.
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
      const was = await timed('export the original', () =>
        exportTo(original, join(folder, 'export'), signal),
      );
      const bytes = await backUp(timed, request, join(folder, 'prices.dump'), was);
      await bringBack(timed, copy, copyUrl, request, folder);
      const { epoch, revision } = await newestRevision(copy.db);
      const { rules } = await timed('verify the copy', () => verify(copy, RULES, () => {}, signal));
      const is = await timed('export the copy', () => exportTo(copy, join(folder, 'copy'), signal));
      if ((await newestRevision(original.db)).revision !== revision) {
        throw new MovingDataError(
          'data was written during the drill, so the copy is of an earlier state: run it again ' +
            'when nothing is loaded',
        );
      }
      isDone = true;
      return {
        revision: wireText(epoch, revision),
        bytes,
        steps,
        compared: compare(was, is),
        broken: rules.filter(({ count }) => count > 0).map(({ rule }) => rule),
        kept: keep ? name : null,
      };
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
