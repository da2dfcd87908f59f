import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse as parseYaml } from 'yaml';
import { SETTINGS } from '../src/config/settings.ts';
import { browserPath, programOnPath } from './support/process/browser.ts';
import {
  type FaultRun,
  faultRun,
  type Part,
  partsOf,
  reportFaults,
} from './support/run/fault-run.ts';
import { makeFolder, sweepFolders, temporaryFolder } from './support/run/folders.ts';
import { groupsOf, writeGroups } from './support/run/groups.ts';
import { startServer } from './support/run/server.ts';
import { type Tally, talliesOf, tallyOf } from './support/run/tally.ts';
import { dropDatabases, makeTemplates } from './support/run/templates.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TAP = join(ROOT, 'node_modules', '.bin', 'tap');

const OPENAPI = join(ROOT, 'openapi.yaml');

/** Reporter for pipes: the reporters of tap redraw the screen. */
const REPORTER = fileURLToPath(new URL('./support/run/reporter.ts', import.meta.url));

/** Processes of tests at a time: about one of three waits for a process or a time limit. */
const JOBS = 3;

let running: ChildProcess | null = null;
let stopped: NodeJS.Signals | null = null;

/** Ends the process group of tap and its test files: by SIGTERM, after 2 s by SIGKILL. */
function endTap(): void {
  const pid = running?.pid;
  if (pid === undefined) return;
  const kill = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-pid, signal);
    } catch {
      // The processes have ended.
    }
  };
  kill('SIGTERM');
  setTimeout(() => kill('SIGKILL'), 2_000);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stopped ??= signal;
    endTap();
  });
}

/** Splits `--data [folder]` from the arguments of tap. */
function parse(args: string[]): { dataFolder: string | null; rest: string[] } {
  const at = args.indexOf('--data');
  if (at < 0) return { dataFolder: null, rest: args };
  const rest = args.toSpliced(at, 1);
  const path = rest.findIndex((each) => !each.startsWith('-') && !each.endsWith('.ts'));
  const folder = path < 0 ? join(ROOT, '..', 'shared', 'data') : rest.splice(path, 1)[0];
  return { dataFolder: resolve(folder ?? ''), rest };
}

/** Replaces each folder among the arguments by the test files below it. */
function withFilesOf(args: readonly string[]): string[] {
  return args.flatMap((arg) => {
    const path = join(ROOT, arg);
    if (arg.startsWith('-') || !existsSync(path) || !statSync(path).isDirectory()) return [arg];
    const files = globSync('**/*.test.ts', { cwd: path }).sort();
    if (files.length === 0) throw new Error(`There is no test file below ${arg}.`);
    return files.map((file) => join(arg, file));
  });
}

/** True if the tests of the explorer can run; prints a line if they cannot. */
function hasBrowserOrTells(): boolean {
  const hasBrowser = browserPath() !== null;
  if (!hasBrowser) {
    const command = 'apt-get install chromium-headless-shell';
    console.log(`# SKIPPED test/explorer: no Chromium on the path (${command})`);
  } else if (programOnPath(['Rscript']) === null) {
    console.log(
      '# SKIPPED the R program of the explorer: no Rscript (apt-get install r-base-core)',
    );
  }
  return hasBrowser;
}

const isTestFile = (argument: string): boolean => argument.endsWith('.ts');

/** The parts of a run; named files are one part. */
function partsFor(rest: string[], data: boolean, faults: FaultRun | null): readonly Part[] {
  // Node compiles each module once for all files and programs; measured services start cold.
  const isCompiledOnce = faults === null;
  const named = rest.filter(isTestFile);
  if (named.length > 0) {
    if (faults) return [{ files: named, jobs: 1, isCompiledOnce }];
    return [{ files: [], groups: groupsOf(named), jobs: JOBS, isCompiledOnce }];
  }
  const files = (pattern: string, exclude?: (path: string) => boolean): string[] =>
    globSync(pattern, { cwd: ROOT, ...(exclude && { exclude }) }).sort();
  if (faults) return partsOf(files('test/faults/**/*.test.ts'));
  const hasBrowser = data || hasBrowserOrTells();
  const isApart = (path: string): boolean =>
    /^test[\\/](data|client|generators)$/.test(path) ||
    (!hasBrowser && /^test[\\/]explorer$/.test(path)) ||
    path.includes('node_modules');
  if (data) return [{ files: files('test/data/*.test.ts'), jobs: JOBS, isCompiledOnce }];
  const groups = groupsOf(files('test/**/*.test.ts', isApart));
  return [{ files: [], groups, jobs: JOBS, isCompiledOnce }];
}

/** The environment of the tests, without any setting of the service. */
function environment(extra: Record<string, string>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of Object.keys(SETTINGS)) delete env[name];
  return { ...env, ...extra };
}

/** Options of tap that the caller has not set. */
function defaultsFor(args: string[], jobs: number, output: string): string[] {
  const has = (...options: string[]): boolean =>
    args.some((arg) => options.some((option) => arg.startsWith(option)));
  const hasCoverage = has('--coverage', '--show-full-coverage');
  const isOwnReporter = !process.stdout.isTTY && !has('--reporter', '-R');
  return [
    hasCoverage ? '--allow-incomplete-coverage' : '--disable-coverage',
    isOwnReporter ? `--reporter=${REPORTER}` : `--output-file=${output}`,
    ...(has('--jobs', '-j') ? [] : [`--jobs=${jobs}`]),
    ...(has('--timeout', '-t') ? [] : ['--timeout=1200']),
  ];
}

/** The exit code and counts of a run of tap. */
interface TapRun {
  readonly code: number;
  readonly tally: Tally;
  readonly files: ReadonlyMap<string, Tally>;
}

async function runTap(args: string[], jobs: number, env: NodeJS.ProcessEnv): Promise<TapRun> {
  const folder = await makeFolder();
  const output = join(folder.path, 'output.tap');
  try {
    const child = spawn(process.execPath, [TAP, ...defaultsFor(args, jobs, output), ...args], {
      cwd: ROOT,
      env: { ...env, TAP_OUTPUT: output },
      stdio: 'inherit',
      detached: true,
    });
    running = child;
    if (stopped) endTap();
    const [code] = (await once(child, 'exit')) as [number | null];
    const text = await readFile(output, 'utf8').catch(() => '');
    return { code: code ?? 1, tally: tallyOf(text), files: talliesOf(text) };
  } finally {
    running = null;
    await folder.remove();
  }
}

/** Runs the parts in order. `compiled` is the folder of the compile cache. */
async function runAll(
  parts: readonly Part[],
  args: string[],
  env: NodeJS.ProcessEnv,
  compiled: string,
) {
  const all: TapRun[] = [];
  // Below the project: tap writes the results of a file outside of it into the root of the project.
  await mkdir(join(ROOT, '.tap'), { recursive: true });
  const programs = await mkdtemp(join(ROOT, '.tap', 'groups-'));
  for (const { files, groups = [], jobs, isCompiledOnce } of parts) {
    const cache = isCompiledOnce ? { NODE_COMPILE_CACHE: compiled } : {};
    const paths = [...(await writeGroups(groups, programs)), ...files];
    if (!stopped) all.push(await runTap([...args, ...paths], jobs, { ...env, ...cache }));
  }
  await rm(programs, { recursive: true });
  const sumOf = (what: keyof Tally): number => all.reduce((sum, { tally }) => sum + tally[what], 0);
  return {
    code: all.find(({ code }) => code !== 0)?.code ?? (stopped ? 1 : 0),
    tally: { passed: sumOf('passed'), failed: sumOf('failed') },
    files: new Map(all.flatMap(({ files }) => [...files])),
  };
}

async function main(): Promise<[number, Tally]> {
  const faults = await faultRun(process.argv.slice(2));
  const { dataFolder, rest: given } = parse(faults?.rest ?? process.argv.slice(2));
  const rest = withFilesOf(given);
  const nothing = { passed: 0, failed: 1 };
  if (dataFolder !== null && !(await stat(dataFolder).catch(() => null))) {
    console.error(`There is no folder ${dataFolder}; give the path: npm run test:data -- FOLDER`);
    return [1, nothing];
  }
  // For this process and all that it starts.
  process.env['TMPDIR'] = await temporaryFolder();
  await sweepFolders();
  const compiled = await makeFolder();
  const server = await startServer(faults ? 'on' : 'off');
  let prefix: string | null = null;
  try {
    console.log(`# PostgreSQL for the tests: ${server.kind}`);
    prefix = stopped ? null : await makeTemplates(server.url);
    if (prefix === null || stopped) return [1, nothing];
    const openapi = join(compiled.path, 'openapi.json');
    await writeFile(openapi, JSON.stringify(parseYaml(await readFile(OPENAPI, 'utf8'))));
    const env = environment({
      TEST_OPENAPI_JSON: openapi,
      TEST_DATABASE_URL: server.url,
      TEST_DATABASE_PREFIX: prefix,
      ...(dataFolder === null ? {} : { DATA_FOLDER: dataFolder }),
      ...faults?.env,
    });
    const parts = partsFor(rest, dataFolder !== null, faults);
    const options = rest.filter((each) => !isTestFile(each));
    const all = [...(faults?.options ?? []), ...options];
    const { code, tally, files } = await runAll(parts, all, env, compiled.path);
    if (faults) await reportFaults(faults, server.kind, files);
    return [code, tally];
  } finally {
    if (prefix !== null) await dropDatabases(server.url, prefix).catch(console.error);
    await server.stop();
    await faults?.remove();
    await compiled.remove();
    await sweepFolders();
  }
}

const HELP = `Usage: npm test -- [files or folders] [options of tap]

Runs the tests against a real PostgreSQL: TEST_DATABASE_URL, else a container, else an embedded one.

  npm test                                  all tests
  npm test -- test/http/answers.test.ts     the tests of a file
  npm test -- test/prices                   the tests of a folder
  npm run test:data -- [folder]             loads of real files, of ../shared/data by default
  npm run test:faults -- [--long] [--write] faults, measured; --write writes docs/reliability.md

The exit code is 0 if all tests passed.
`;

if (process.argv.some((arg) => arg === '--help' || arg === '-h')) {
  process.stdout.write(HELP);
  process.exit(0);
}

let code = 1;
let tally: Tally = { passed: 0, failed: 1 };
try {
  [code, tally] = await main();
} catch (error) {
  console.error(error);
}
// A crash of tap counts as a failure, although no assertion failed.
const failed = code !== 0 && tally.failed === 0 ? 1 : tally.failed;
console.log(`${tally.passed} passed, ${failed} failed`);
// The SIGKILL timer of a stopped run may still be pending.
process.exit(code === 0 && failed > 0 ? 1 : code);
