import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from } from 'pg-copy-streams';
import { matchKey } from '../../catalog/match-key.ts';
import type { SourceFile } from '../file.ts';
import { type Problems, problemOf, Refusal } from '../problems.ts';
import { isRight, type NamedPoint, pointsIn } from './file.ts';
import type { Selection } from './request.ts';

/** The points as they are named; `id` is that of the price. */
const TABLE = `
drop table if exists pg_temp.withdrawal;
create temp table withdrawal (
  line bigint not null,
  code text not null,
  key text not null,
  id integer,
  date date not null
)`;

/** Takes the staging table away at once: a connection that is used again would keep it. */
export const UNSTAGE = 'drop table pg_temp.withdrawal';

/** One line of COPY in text format; a visible character may be the backslash. */
const copyLine = ({ line, code, date }: NamedPoint): string => {
  const [name, key] = [code, matchKey(code)].map((text) => text.replaceAll('\\', '\\\\'));
  return `${line}\t${name}\t${key}\t\\N\t${date}\n`;
};

async function* linesOf(batches: AsyncIterable<NamedPoint[]>): AsyncGenerator<string> {
  for await (const points of batches) if (points.length > 0) yield points.map(copyLine).join('');
}

const copied = (driver: PoolClient, batches: AsyncIterable<NamedPoint[]>): Promise<void> =>
  pipeline(
    Readable.from(linesOf(batches)),
    driver.query(from('copy pg_temp.withdrawal from stdin')),
  );

/** The points of a file, as long as it is the file that was opened. */
async function stageFile(driver: PoolClient, file: SourceFile, sha256: Buffer, problems: Problems) {
  try {
    await copied(driver, pointsIn(file, problems));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    problems.refuse(error.problem);
  }
  if (!(await file.sha256()).equals(sha256)) {
    const message = 'The file was changed while it was read: name it again';
    problems.refuse(problemOf('file_changed', message, {}));
  }
}

/**
 * Names the points in a temporary table of the connection, as far as that needs no look at the
 * data; problems are noted.
 * @throws errors of the file system and of the database
 */
export async function stageWithdrawal(
  driver: PoolClient,
  selection: Selection,
  source: { readonly file: SourceFile; readonly sha256: Buffer } | null,
  problems: Problems,
): Promise<void> {
  await driver.query(TABLE);
  if (source) return stageFile(driver, source.file, source.sha256, problems);
  if (!('dates' in selection)) return;
  const { code, dates } = selection;
  const points = [...new Set(dates)].map((date) => ({ line: 0, code, date }));
  async function* named() {
    yield points.filter((point) => isRight(point, problems));
  }
  await copied(driver, named());
}
