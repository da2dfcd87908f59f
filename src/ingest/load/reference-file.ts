import { createHash } from 'node:crypto';
import type { Client } from '../../db/client.ts';
import { type Connection, openRevision, withSession } from '../../db/connection.ts';
import {
  countEntries,
  type LoadCounts,
  NO_COUNTS,
  nextBatch,
  writeBatch,
} from '../../db/ledger.ts';
import { textOf } from '../../db/revisions.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { readYaml, type YamlKind, type YamlPlace } from '../mapping/yaml.ts';
import { type LoadErrorCode, type LoadProblem, problemOf } from '../records/load-error.ts';
import { Problems } from '../records/problems.ts';
import { openSource, type SourceFile } from '../records/source-file.ts';
import type { Listed } from '../staging/change-set.ts';
import { withLockOrSnapshot } from './apply.ts';
import { earlierBatch } from './batches.ts';
import type { ChangeRequest, LoadReport } from './request.ts';

/*
 * Loads of reference data from a YAML file: publication calendars and rates of VAT. A file is
 * loaded whole, or not at all. There are few rows, so they are not staged.
 */

/** Reports a problem of a member, given by its JSON pointer. */
export type ReportFault = (
  code: LoadErrorCode,
  message: string,
  pointer: string,
  value?: string,
) => void;

/** One changed entry of a file. Without `before` it is new; without `after` it has ended. */
export interface EntryChange<Value> {
  readonly before: Value | null;
  readonly after: Value | null;
}

/** The changes that a file makes. */
interface FileChanges<Change> {
  /** In the order of the file. */
  readonly changes: readonly Change[];
  /** Entries of the file that the database has already. */
  readonly unchanged: number;
  /** Writes the changes in the open revision. @param batch the number of the batch */
  write(trx: Trx, batch: number): Promise<void>;
}

/** A kind of reference files. */
export interface ReferenceKind<Content, Change extends EntryChange<unknown>> {
  /** The format of its batches in the ledger. */
  readonly format: string;
  readonly file: YamlKind;
  /** The message about a file without entries. */
  readonly emptyMessage: string;
  /** Checks the form of a file and reports its faults. Null if it has no entry. */
  read(value: unknown, report: ReportFault): Content | null;
  /** Compares a file with the database, and reports unknown names. */
  compare(trx: Trx, content: Content, report: ReportFault): Promise<FileChanges<Change>>;
}

/** The changes that a load will make, reported before they are written. */
interface ReferencePreview<Change> {
  readonly changes: Listed<Change>;
  readonly unchanged: number;
}

export interface ReferenceRequest<Change>
  extends Omit<ChangeRequest<ReferencePreview<Change>>, 'reason'> {
  /** Path of the file. */
  readonly file: string;
  readonly reason?: string | undefined;
}

/** Result of a load, as of every other format. `counts.rows` are entries of the file. */
export interface ReferenceReport<Change>
  extends Pick<LoadReport, 'status' | 'batch' | 'revision' | 'errorsTotal'> {
  readonly counts: LoadCounts;
  readonly errors: readonly (LoadProblem & { readonly file: string })[];
  readonly preview: ReferencePreview<Change> | null;
}

/** A load whose file was read. `content` is null if nothing of it can be compared. */
interface ReadLoad<Content, Change extends EntryChange<unknown>> {
  readonly kind: ReferenceKind<Content, Change>;
  readonly request: ReferenceRequest<Change>;
  readonly source: SourceFile;
  readonly content: Content | null;
  readonly report: ReportFault;
  readonly problems: Problems;
  readonly sha256: Buffer;
  readonly startedAt: string;
  readonly reason: string | null;
}

/**
 * Loads a file of reference data completely, in one transaction and one revision, or not at all.
 * Every load is recorded in `load_batch`, including refused ones, except dry runs.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing has
 *   changed then
 */
export async function loadReferenceFile<Content, Change extends EntryChange<unknown>>(
  client: Client,
  kind: ReferenceKind<Content, Change>,
  request: ReferenceRequest<Change>,
): Promise<ReferenceReport<Change>> {
  request.signal?.throwIfAborted();
  const source = await openSource(request.file);
  try {
    return await withSession(client, request.signal, async (connection) => {
      const load = await readLoad(connection, kind, request, source);
      // A file with faults is still compared, so that all unknown names are reported with them.
      return withLockOrSnapshot(connection, request, (trx) => apply(trx, load)).catch(
        (error: unknown) => {
          if (error instanceof FileRefused) return refuse(connection, load);
          throw error;
        },
      );
    });
  } finally {
    await source.close();
  }
}

/** Rolls the transaction back; the problems of the load state why. */
class FileRefused extends Error {
  override readonly name = 'FileRefused';
}

/** The bytes of a file, up to one more than it may have. */
async function bytesOf(source: SourceFile, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source.bytes()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > bytesMax) break;
  }
  return Buffer.concat(chunks);
}

/** Reads a file, and reports its faults with their lines and columns. */
async function readContent<Content, Change extends EntryChange<unknown>>(
  kind: ReferenceKind<Content, Change>,
  source: SourceFile,
  problems: Problems,
): Promise<Pick<ReadLoad<Content, Change>, 'content' | 'report'>> {
  const bytes = await bytesOf(source, kind.file.bytesMax);
  const { value, places, violations } = readYaml(bytes, kind.file);
  const placeOf = (pointer: string): YamlPlace => {
    let place = pointer;
    while (place !== '' && !places.has(place)) place = place.replace(/\/[^/]*$/, '');
    return places.get(place) ?? { line: 1, column: 1 };
  };
  const reportAt = (
    code: LoadErrorCode,
    message: string,
    pointer: string,
    { line, column }: YamlPlace,
    text: string | null,
  ): void => {
    const name = pointer === '' ? null : pointer.slice(1).replaceAll('/', '.');
    problems.refuse(
      problemOf(code, message, { line, position: column, column: name, value: text }),
    );
  };
  const report: ReportFault = (code, message, pointer, text) =>
    reportAt(code, message, pointer, placeOf(pointer), text ?? null);
  for (const { line, column = 1, pointer, message } of violations) {
    reportAt('invalid_yaml', message, pointer, { line, column }, null);
  }
  if (violations.length > 0) return { content: null, report };
  const content = value === null ? null : kind.read(value, report);
  if (content === null && !problems.refuses) report('empty_file', kind.emptyMessage, '');
  return { content, report };
}

const entryOf = <Content, Change extends EntryChange<unknown>>(
  { kind, request, source, sha256, startedAt, reason }: ReadLoad<Content, Change>,
  counts: LoadCounts,
) => ({
  format: kind.format,
  fileName: source.name,
  sha256,
  mappingSha256: null,
  vintage: null,
  actor: request.actor,
  reason,
  startedAt,
  counts,
});

const reportOf = <Content, Change extends EntryChange<unknown>>(
  status: ReferenceReport<Change>['status'],
  { source, problems }: Pick<ReadLoad<Content, Change>, 'source' | 'problems'>,
  outcome: Partial<ReferenceReport<Change>> = {},
): ReferenceReport<Change> => ({
  status,
  batch: null,
  revision: null,
  counts: NO_COUNTS,
  errors: problems.inOrder().map((problem) => ({ file: source.path, ...problem })),
  errorsTotal: problems.total,
  preview: null,
  ...outcome,
});

/** Compares the file with the database, and writes its changes in one revision. */
async function apply<Content, Change extends EntryChange<unknown>>(
  trx: Trx,
  load: ReadLoad<Content, Change>,
): Promise<ReferenceReport<Change>> {
  const { kind, request, content, report, problems, source, sha256 } = load;
  const found = content === null ? null : await kind.compare(trx, content, report);
  if (problems.refuses || found === null) throw new FileRefused();
  const { changes: all, unchanged } = found;
  const preview = {
    changes: { total: all.length, shown: all },
    unchanged,
  };
  const earlier = await earlierBatch(trx, { sha256, formatName: kind.format, format: {} });
  if (earlier && all.length === 0 && !request.dryRun) {
    return reportOf('already-loaded', load, { batch: earlier.id });
  }
  await request.onPreview?.(preview);
  const changed = countEntries(all);
  const rows = unchanged + all.length;
  const counts = { ...NO_COUNTS, ...changed, rows, unchanged };
  if (request.dryRun) return reportOf('previewed', load, { counts, preview });
  const why = load.reason ?? `load ${kind.format} ${source.name}`;
  const number = all.length === 0 ? null : await openRevision(trx, why);
  const batch = await nextBatch(trx);
  await found.write(trx, batch);
  // An earlier file may be loaded again to take a later one back. The ledger holds a file once, so
  // this is the file together with the batch that it follows.
  const mappingSha256 = earlier
    ? createHash('sha256')
        .update(`after ${batch - 1}`)
        .digest()
    : null;
  await writeBatch(trx, batch, 'applied', number, { ...entryOf(load, counts), mappingSha256 });
  const revision = number === null ? null : await textOf(trx, number);
  const status = number === null ? 'unchanged' : 'applied';
  return reportOf(status, load, { batch, revision, counts, preview });
}

/** Records a refused load in the ledger, in a transaction of its own. A dry run is not recorded. */
async function refuse<Content, Change extends EntryChange<unknown>>(
  { db }: Connection,
  load: ReadLoad<Content, Change>,
): Promise<ReferenceReport<Change>> {
  const record = async (trx: Trx): Promise<number> => {
    const batch = await nextBatch(trx);
    await writeBatch(trx, batch, 'refused', null, entryOf(load, NO_COUNTS));
    return batch;
  };
  const batch = load.request.dryRun ? null : await db.transaction().execute(record);
  return reportOf('refused', load, { batch });
}

async function readLoad<Content, Change extends EntryChange<unknown>>(
  { driver }: Connection,
  kind: ReferenceKind<Content, Change>,
  request: ReferenceRequest<Change>,
  source: SourceFile,
): Promise<ReadLoad<Content, Change>> {
  const problems = new Problems();
  const { rows } = await driver.query<{ now: string }>('select clock_timestamp() as now');
  const sha256 = await source.sha256(request.signal);
  const { content, report } = await readContent(kind, source, problems);
  if (!(await source.sha256(request.signal)).equals(sha256)) {
    const message = 'The file was changed while it was read: load it again';
    problems.refuse(problemOf('file_changed', message, {}));
  }
  const reason = request.reason?.trim() || null;
  const startedAt = rows[0]?.now ?? '';
  return { kind, request, source, content, report, problems, sha256, startedAt, reason };
}
