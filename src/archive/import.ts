import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import type pg from 'pg';
import { escapeIdentifier } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Client } from '../db/client.ts';
import { liftLimits, withSession, withWriteLock } from '../db/connection.ts';
import { chunksOf } from '../std/chunks.ts';
import { columnList, lineEnds } from './copy.ts';
import type { ArchiveProgress } from './format.ts';
import { ArchiveRefusal, type Manifest, type ManifestFile, readManifest } from './manifest.ts';
import {
  clearMigrated,
  refreshStatistics,
  requireEmpty,
  restoreOwn,
  setSequences,
  withoutTriggers,
} from './restore.ts';
import { ARCHIVED, type Column, migrationsOf, type Table, tablesOf } from './tables.ts';

/** A file of an archive. It stays open, so that the same file is hashed and imported. */
interface ArchiveFile {
  readonly entry: ManifestFile;
  readonly handle: FileHandle;
}

async function openFile(folder: string, entry: ManifestFile): Promise<ArchiveFile> {
  const handle = await open(join(folder, entry.file), 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new ArchiveRefusal(`${entry.file} is missing from ${folder}`);
  });
  const stat = await handle.stat();
  if (stat.isFile() && stat.size === entry.bytes) return { entry, handle };
  await handle.close();
  throw new ArchiveRefusal(
    `${entry.file} has ${stat.size} bytes; the manifest says ${entry.bytes}`,
  );
}

async function closeFiles(files: readonly ArchiveFile[]): Promise<void> {
  for (const { handle } of files) await handle.close();
}

/**
 * Opens the files of an archive, in the order of the manifest.
 * @throws ArchiveRefusal if a file is missing, or its size differs from the manifest
 */
async function openFiles(folder: string, manifest: Manifest): Promise<ArchiveFile[]> {
  const files: ArchiveFile[] = [];
  try {
    for (const entry of manifest.files) files.push(await openFile(folder, entry));
    return files;
  } catch (error) {
    await closeFiles(files);
    throw error;
  }
}

/**
 * Reads a file, and compares its SHA-256 with the manifest.
 * @throws ArchiveRefusal at the end if they differ
 */
async function* checkedBytes(
  { entry, handle }: ArchiveFile,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  for await (const bytes of chunksOf(handle)) {
    signal?.throwIfAborted();
    hash.update(bytes);
    yield bytes;
  }
  if (hash.digest('hex') === entry.sha256) return;
  throw new ArchiveRefusal(
    `${entry.file} was changed after the export: its SHA-256 is not that of the manifest`,
  );
}

interface ImportRequest {
  readonly folder: string;
  readonly onProgress?: (progress: ArchiveProgress) => void;
  readonly signal?: AbortSignal;
}

/** A running import. */
interface ImportRun {
  readonly driver: pg.PoolClient;
  readonly request: ImportRequest;
  readonly manifest: Manifest;
  readonly files: readonly ArchiveFile[];
  readonly meter: { rows: number; readonly total: number };
}

const shown = (names: readonly string[]): string => names.join(', ') || 'none';

/** @throws ArchiveRefusal with the differences if archive and database differ in their schema */
async function requireSchema(driver: pg.ClientBase, manifest: Manifest): Promise<Table[]> {
  const own = await migrationsOf(driver);
  if (own.join() !== manifest.migrations.join()) {
    const missing = manifest.migrations.filter((each) => !own.includes(each));
    const surplus = own.filter((each) => !manifest.migrations.includes(each));
    throw new ArchiveRefusal(
      `the archive is of another schema: the database lacks ${shown(missing)}, ` +
        `the archive ${shown(surplus)}; import it with the version that wrote it, ` +
        `${manifest.createdBy}, and migrate afterwards`,
    );
  }
  const tables = await tablesOf(driver);
  for (const table of tables) requireColumns(manifest, table);
  return tables;
}

/** @throws ArchiveRefusal if a file has other columns than its table */
function requireColumns(manifest: Manifest, { name, columns }: Table): void {
  const entry = manifest.files.find((each) => each.table === name);
  if (isDeepStrictEqual(entry?.columns, columns)) return;
  const text = (all: readonly Column[] = []): string =>
    shown(all.map((each) => `${each.name} ${each.type}`));
  throw new ArchiveRefusal(
    `${entry?.file} has the columns ${text(entry?.columns)}, the table ${text(columns)}`,
  );
}

async function checkSums({ request, files, manifest }: ImportRun): Promise<void> {
  const total = manifest.files.reduce((sum, each) => sum + each.bytes, 0);
  let done = 0;
  for (const file of files) {
    for await (const bytes of checkedBytes(file, request.signal)) {
      done += bytes.length;
      request.onProgress?.({ item: `checking ${file.entry.file}`, done, total, unit: 'bytes' });
    }
  }
}

/** Reads a file again, which may have changed since, and reports progress. */
async function* withProgress(
  { request, meter }: ImportRun,
  file: ArchiveFile,
): AsyncGenerator<Buffer> {
  for await (const piece of checkedBytes(file, request.signal)) {
    meter.rows += lineEnds(piece);
    const done = Math.min(meter.rows, meter.total);
    request.onProgress?.({ item: file.entry.table, done, total: meter.total, unit: 'rows' });
    yield piece;
  }
}

/** Adds the file name to errors of PostgreSQL about invalid values. */
function toRefusal(file: string, error: unknown): unknown {
  const { code = '', message, where } = error as pg.DatabaseError;
  if (!/^2[23]/.test(code)) return error;
  return new ArchiveRefusal(`${file}: ${message}${where ? ` (${where})` : ''}`, { cause: error });
}

async function loadTable(run: ImportRun, { name, columns }: Table): Promise<void> {
  const file = run.files.find((each) => each.entry.table === name);
  if (!file) throw new Error(`no file was opened for ${name}`);
  const { entry } = file;
  const copy = run.driver.query(
    copyFrom(
      `copy ${escapeIdentifier(name)} (${columnList(columns)}) from stdin
        (format csv, header match, encoding 'UTF8')`,
    ),
  );
  try {
    await pipeline(Readable.from(withProgress(run, file)), copy);
  } catch (error) {
    throw toRefusal(entry.file, error);
  }
  if (copy.rowCount !== entry.rows) {
    throw new ArchiveRefusal(
      `${entry.file} has ${copy.rowCount} rows; the manifest says ${entry.rows}`,
    );
  }
}

/** Checks what is no foreign key (migrations/0005-history.ts). @throws ArchiveRefusal */
async function requireRevisions(driver: pg.ClientBase): Promise<void> {
  const { rows } = await driver.query<{ revision_to: string }>(
    `select revision_to from series_history h
      where not exists (select from revision r where r.number = h.revision_to) limit 1`,
  );
  const [unknown] = rows;
  if (unknown === undefined) return;
  throw new ArchiveRefusal(
    `series_history.csv: a row ended with revision ${unknown.revision_to}, ` +
      'which revision.csv does not have',
  );
}

async function writeAll(run: ImportRun, tables: readonly Table[]): Promise<void> {
  const { driver, manifest } = run;
  await liftLimits(driver);
  await withoutTriggers(driver, async () => {
    await requireEmpty(driver);
    await clearMigrated(driver);
    for (const table of tables) await loadTable(run, table);
    await requireRevisions(driver);
    await setSequences(driver);
    await restoreOwn(driver);
  });
  const { rows } = await driver.query<{ epoch: string; revision: string }>(
    `select epoch, (select coalesce(max(number), 0) from revision)::text as revision from service`,
  );
  const [found] = rows;
  if (
    rows.length !== 1 ||
    found?.epoch !== manifest.epoch ||
    found.revision !== manifest.revision
  ) {
    throw new ArchiveRefusal('the archive does not hold the epoch and revision of its manifest');
  }
  // Makes running services check the newest revision.
  await driver.query(`select pg_notify('revision', $1)`, [manifest.revision]);
}

/**
 * Imports an archive into an empty, migrated database, in one transaction. Checks the
 * SHA-256 of every file before it writes.
 * @throws ArchiveRefusal if the archive or the database is unsuitable, errors of the file system
 * and of the database, and the reason of the signal
 */
export async function importArchive(client: Client, request: ImportRequest): Promise<Manifest> {
  const { folder, signal } = request;
  const manifest = await readManifest(
    folder,
    ARCHIVED.map((each) => each.name),
  );
  const files = await openFiles(folder, manifest);
  try {
    await withSession(client, signal, async ({ db, driver }) => {
      const tables = await requireSchema(driver, manifest);
      await requireEmpty(driver);
      const total = manifest.files.reduce((sum, each) => sum + each.rows, 0);
      const run: ImportRun = { driver, request, manifest, files, meter: { rows: 0, total } };
      await checkSums(run);
      await withWriteLock(db, () => writeAll(run, tables));
      // The data is committed. If this fails, autovacuum does it later.
      await refreshStatistics(driver).catch(() => {});
    });
    return manifest;
  } finally {
    await closeFiles(files);
  }
}
