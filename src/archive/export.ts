import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { escapeIdentifier } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Client } from '../db/client.ts';
import { liftLimits, withSession } from '../db/connection.ts';
import { onlyRow } from '../db/revisions.ts';
import { VERSION } from '../std/program.ts';
import { copyStatement, lineEnds, rowsOf } from './copy.ts';
import { type ArchiveProgress, MANIFEST_FILE } from './format.ts';
import {
  ARCHIVE,
  FolderRefusal,
  fileNameOf,
  MANIFEST_PART,
  type Manifest,
  type ManifestFile,
  writeManifest,
} from './manifest.ts';
import { ARCHIVED, migrationsOf, type Table, tablesOf } from './tables.ts';

interface ExportRequest {
  /** An empty or missing folder. */
  readonly folder: string;
  /** Slugs of the markets to export; null for all. */
  readonly markets: readonly string[] | null;
  readonly onProgress?: (progress: ArchiveProgress) => void;
  readonly signal?: AbortSignal;
}

/** A running export. */
interface ExportRun {
  readonly driver: pg.PoolClient;
  readonly request: ExportRequest;
  /** Rows of each table in this snapshot. */
  readonly counts: ReadonlyMap<string, number>;
  readonly meter: { rows: number; readonly total: number };
}

/**
 * Creates the folder if it is missing, and claims it with an unfinished manifest.
 * @returns true if it created the folder
 * @throws FolderRefusal if the folder is not empty
 */
async function claimFolder(folder: string): Promise<boolean> {
  const created = await mkdir(folder, { recursive: true });
  const isEmpty = (await readdir(folder)).length === 0;
  const claim = isEmpty ? await open(join(folder, MANIFEST_PART), 'wx').catch(nullIfExists) : null;
  if (!claim) {
    throw new FolderRefusal(`${folder} is not empty: an export needs a folder without files`);
  }
  await claim.close();
  return created !== undefined;
}

/** Two concurrent exports may find the same empty folder; only one creates the manifest. */
function nullIfExists(error: NodeJS.ErrnoException): null {
  if (error.code === 'EEXIST') return null;
  throw error;
}

/** Yields the bytes of a table as CSV, hashes them and reports progress. */
async function* hashedRows(run: ExportRun, table: Table, hash: Hash): AsyncGenerator<Buffer> {
  const { driver, request, meter } = run;
  for await (const bytes of driver.query(copyTo(copyStatement(table, request.markets)))) {
    request.signal?.throwIfAborted();
    meter.rows += lineEnds(bytes);
    const done = Math.min(meter.rows, meter.total);
    request.onProgress?.({ item: table.name, done, total: meter.total, unit: 'rows' });
    hash.update(bytes);
    yield bytes;
  }
}

/** Writes a table to a new file, flushed to disk. */
async function writeTable(run: ExportRun, table: Table): Promise<ManifestFile> {
  const file = fileNameOf(table.name);
  const out = createWriteStream(join(run.request.folder, file), { flags: 'wx', flush: true });
  const hash = createHash('sha256');
  await pipeline(hashedRows(run, table, hash), out);
  const columns = table.columns.map(({ name, type }) => ({ name, type }));
  const rows = run.counts.get(table.name) ?? 0;
  const sha256 = hash.digest('hex');
  return { table: table.name, file, rows, bytes: out.bytesWritten, sha256, columns };
}

async function countRows(
  driver: pg.ClientBase,
  tables: readonly Table[],
  markets: ExportRequest['markets'],
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const table of tables) {
    const { rows } = await driver.query<{ count: string }>(
      `select count(*) as count ${rowsOf(table, markets)}`,
    );
    counts.set(table.name, Number(rows[0]?.count));
  }
  return counts;
}

const HEAD = `
  select epoch, (select coalesce(max(number), 0) from revision)::text as revision,
    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now
  from service`;

/** Exports all tables in one transaction, from one snapshot. */
async function writeTables(driver: pg.PoolClient, request: ExportRequest): Promise<Manifest> {
  await driver.query('begin isolation level repeatable read, read only');
  await liftLimits(driver);
  // Blocks migrations until the end, so that all tables have the same schema.
  const names = ARCHIVED.map((each) => escapeIdentifier(each.name)).join(', ');
  await driver.query(`lock table ${names} in access share mode`);
  const migrations = await migrationsOf(driver);
  const tables = await tablesOf(driver);
  const head = await driver.query<{ epoch: string; revision: string; now: string }>(HEAD);
  const service = onlyRow(head.rows);
  const counts = await countRows(driver, tables, request.markets);
  const total = [...counts.values()].reduce((sum, each) => sum + each, 0);
  const run: ExportRun = { driver, request, counts, meter: { rows: 0, total } };
  const files: ManifestFile[] = [];
  for (const table of tables) files.push(await writeTable(run, table));
  await driver.query('commit');
  return {
    ...ARCHIVE,
    createdAt: service.now,
    createdBy: VERSION,
    migrations,
    epoch: service.epoch,
    revision: service.revision,
    markets: request.markets === null ? null : [...request.markets],
    files,
  };
}

/** Removes the files of a failed export, so that it can be repeated. */
async function removeFiles(folder: string, isCreated: boolean): Promise<void> {
  const names = ARCHIVED.map((each) => fileNameOf(each.name));
  for (const name of [...names, MANIFEST_FILE, MANIFEST_PART]) {
    await rm(join(folder, name), { force: true });
  }
  if (isCreated) await rm(folder, { recursive: true, force: true });
}

/**
 * Exports the data, history and ledger of a database to a folder: one CSV file per table, then the
 * manifest. All files are of one snapshot. Does not block readers or writers, and needs constant
 * memory. A failed export removes its files.
 * @throws FolderRefusal if the folder is not empty, errors of the file system and of the database,
 * and the reason of the signal
 */
export async function exportArchive(client: Client, request: ExportRequest): Promise<Manifest> {
  const isCreated = await claimFolder(request.folder);
  try {
    const manifest = await withSession(client, request.signal, ({ driver }) =>
      writeTables(driver, request),
    );
    await writeManifest(request.folder, manifest);
    return manifest;
  } catch (error) {
    await removeFiles(request.folder, isCreated).catch(() => {});
    throw error;
  }
}
