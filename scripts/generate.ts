// Writes every generated file of the project: see HELP.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { MARKETS, type Market } from '../src/catalog/markets.ts';
import { scopeOf } from '../src/catalog/scopes.ts';
import { FORMAT_NAMES, formatsOf } from '../src/contract/schemas/formats.ts';
import { OPTION_NAMES } from '../src/contract/schemas/options.ts';
import { mappingSchemaText } from '../src/ingest/mapping/schema.ts';
import { type TestDatabase, testDatabase } from '../test/support/database/database.ts';
import { recordExamples } from '../test/support/prices/examples.ts';
import { statementsText } from '../test/support/prices/statements.ts';
import { startServer } from '../test/support/run/server.ts';
import { dropDatabases, makeTemplates } from '../test/support/run/templates.ts';
import { pythonTypes } from './python-types.ts';
import { schemaText } from './schema.ts';
import { installTools, makeTypescriptClient, TOOLS } from './typescript-client.ts';

const HELP = `Usage: npm run generate

Writes the files that are made from others, in this order. Run it after a change of the catalog, the
schema, the sample data or the contract, and read what changed in them.

  src/db/schema.sql           the whole schema, for reading and for db verify
  src/contract/openapi/examples.json  examples of the OpenAPI document, as a freshly seeded service answers
  openapi.yaml                the OpenAPI document
  test/prices/statements.sql  the SQL of every shape of request, for reading
  docs/mapping.schema.json    the JSON schema of a mapping, for editors
  README.md                   its table of markets
  clients                     their options; schema.d.ts, client.js and client.d.ts of the TypeScript
                              client, by the tools of test/client; the types of records in Python

It uses the PostgreSQL of TEST_DATABASE_URL, else a container, else an embedded one.
`;

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const write = async (file: string, text: string): Promise<void> => {
  await writeFile(new URL(`../${file}`, import.meta.url), text);
  process.stdout.write(`Wrote ${file}\n`);
};

const HEADING = '| Market | Scope | Further filters |\n|---|---|---|\n';

const rowOf = ({ slug, filters }: Market): string =>
  `| \`${slug}\` | \`${scopeOf(slug)}\` | ${filters.map((each) => `\`${each}\``).join(', ')} |\n`;

/** Writes the table of markets, between its heading and the next empty line. */
async function writeReadme(): Promise<void> {
  const text = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const [before, after] = text.split(HEADING);
  if (after === undefined) throw new Error(`README.md lacks the heading of the table: ${HEADING}`);
  const rest = after.slice(after.indexOf('\n\n') + 1);
  await write('README.md', [before, HEADING, ...MARKETS.map(rowOf), rest].join(''));
}

/** Replaces the only text that a pattern finds in a file. */
async function replaceIn(file: string, pattern: RegExp, text: string): Promise<void> {
  const before = await readFile(new URL(`../${file}`, import.meta.url), 'utf8');
  if (!pattern.test(before)) throw new Error(`${file} has no text like ${pattern}`);
  await write(
    file,
    before.replace(pattern, () => text),
  );
}

const LINE_MAX = 100;

/** Words in lines of at most `LINE_MAX` characters, the further ones indented. */
function wrapped(words: readonly string[]): string {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > LINE_MAX) {
      lines.push(last === undefined ? word : `    ${word}`);
    } else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join('\n');
}

/** Writes the options that the clients know. */
async function writeClientOptions(): Promise<void> {
  const [first, ...more] = OPTION_NAMES;
  const names = [`OPTIONS = frozenset("""${first}`, ...more.slice(0, -1)];
  const python = wrapped([...names, `${more.at(-1)}""".split())`]);
  await replaceIn(
    'clients/python/commodity_prices.py',
    /^OPTIONS = frozenset[^)]*\(\)\)$/m,
    python,
  );
  const ofFormats = OPTION_NAMES.filter((name) => formatsOf(name).length < FORMAT_NAMES.length);
  const typescript = `type FormatOption = ${ofFormats.map((name) => `'${name}'`).join(' | ')};`;
  await replaceIn('clients/typescript/client.ts', /^type FormatOption = .*;$/m, typescript);
}

/** Writes the files generated from the schema and the sample data of a database. */
async function fromDatabase(test: Teardown, database: TestDatabase): Promise<void> {
  await write('src/db/schema.sql', await schemaText(database.pool));
  // Answers are checked against openapi.yaml, which this module reads when it is loaded.
  await writeOpenapi();
  const { serviceOn } = await import('../test/support/http/service.ts');
  const examples = await recordExamples(await serviceOn(test, database));
  await write('src/contract/openapi/examples.json', `${JSON.stringify(examples, null, 1)}\n`);
}

/** Runs in a new process: this one has loaded the old examples. */
async function writeOpenapi(): Promise<void> {
  const args = ['src/cli/main.ts', 'openapi', '--write'];
  await promisify(execFile)(process.execPath, args, { cwd: ROOT });
}

/** Collects teardown steps for the test helpers and runs them in reverse order. */
class Teardown {
  readonly #steps: (() => unknown)[] = [];

  teardown(step: () => unknown): void {
    this.#steps.push(step);
  }

  async end(): Promise<void> {
    for (const step of this.#steps.reverse()) await step();
  }
}

async function main(): Promise<void> {
  const server = await startServer();
  const test = new Teardown();
  test.teardown(() => server.stop());
  try {
    const prefix = await makeTemplates(server.url);
    test.teardown(() => dropDatabases(server.url, prefix));
    Object.assign(process.env, { TEST_DATABASE_URL: server.url, TEST_DATABASE_PREFIX: prefix });
    await fromDatabase(test, await testDatabase(test as never, { seeded: true }));
  } finally {
    await test.end();
  }
  await writeOpenapi();
  process.stdout.write('Wrote openapi.yaml\n');
  await write('test/prices/statements.sql', await statementsText());
  await write('docs/mapping.schema.json', mappingSchemaText());
  await writeReadme();
  await writeClientOptions();
  const { components } = parse(await readFile(`${ROOT}openapi.yaml`, 'utf8'));
  await write('clients/python/commodity_prices_types.py', pythonTypes(components.schemas));
  await installTools(TOOLS);
  await makeTypescriptClient(`${ROOT}clients/typescript`);
  process.stdout.write('Wrote clients/typescript\n');
}

if (process.argv.length > 2) {
  const isHelp = ['--help', '-h'].includes(process.argv[2] ?? '');
  (isHelp ? process.stdout : process.stderr).write(HELP);
  process.exit(isHelp ? 0 : 2);
}
await main();
