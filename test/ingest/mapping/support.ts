import type t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import type { LoadReport } from '../../../src/ingest/load/request.ts';
import { MappingError, mappingOf } from '../../../src/ingest/mapping/mapping.ts';
import { tableWith } from '../../../src/ingest/mapping/table.ts';
import { loadText } from '../support/loading.ts';

type Test = Pick<typeof t, 'teardown'>;
type LoadingOptions = NonNullable<Parameters<typeof loadText>[4]>;

/** Parses a mapping. */
export const mappingFrom = (text: string) => mappingOf(Buffer.from(text), 'mapping.yaml');

/** The violations of a mapping, one a line; empty for a valid one. */
export function faultsOf(text: string): string[] {
  try {
    mappingFrom(text);
    return [];
  } catch (error) {
    if (error instanceof MappingError) return error.faults;
    throw error;
  }
}

/** Loads a file with a mapping, both given by content. */
export const loadTable = (
  test: Test,
  client: Client,
  mapping: string,
  content: string | Uint8Array,
  options: LoadingOptions = {},
): Promise<LoadReport> =>
  loadText(test, client, 'table', content, { ...options, reader: tableWith(mappingFrom(mapping)) });

/** The line, column, value and code of each error. */
export const placesOf = (report: LoadReport): unknown[][] =>
  report.errors.map(({ line, column, value, code }) => [line, column, value, code]);
