// Runs statements of DuckDB, the first argument, and prints the rows of each with tabs between.
import { DuckDBInstance } from '@duckdb/node-api';

const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
const statements = await connection.extractStatements(process.argv[2] ?? '');
for (let index = 0; index < statements.count; index += 1) {
  const statement = await statements.prepare(index);
  const rows = await (await statement.runAndReadAll()).getRows();
  for (const row of rows) process.stdout.write(`${row.join('\t')}\n`);
}
connection.closeSync();
