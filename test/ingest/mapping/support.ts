import type t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import type { LoadReport } from '../../../src/ingest/load/request.ts';
import { MappingError, mappingOf } from '../../../src/ingest/mapping/mapping.ts';
import { tableWith } from '../../../src/ingest/mapping/table.ts';
import { loadText } from '../support.ts';

type Test = Pick<typeof t, 'teardown'>;
type Options = NonNullable<Parameters<typeof loadText>[4]>;

/** A mapping from its text. */
export const mappingFrom = (text: string) => mappingOf(Buffer.from(text), 'mapping.yaml');

/** What is wrong with a mapping, a line for each; none when it is right. */
export function faultsOf(text: string): string[] {
  try {
    mappingFrom(text);
    return [];
  } catch (error) {
    if (error instanceof MappingError) return error.faults;
    throw error;
  }
}

/** Loads a file of this content with a mapping of this text. */
export const loadTable = (
  test: Test,
  client: Client,
  mapping: string,
  content: string | Uint8Array,
  options: Options = {},
): Promise<LoadReport> =>
  loadText(test, client, 'table', content, { ...options, reader: tableWith(mappingFrom(mapping)) });

/** The errors in full: line, column, value, code. */
export const placesOf = (report: LoadReport): unknown[][] =>
  report.errors.map(({ line, column, value, code }) => [line, column, value, code]);
