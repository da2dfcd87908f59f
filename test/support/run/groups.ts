import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Test files of one process. */
export interface Group {
  /** Path of its program below a folder of its own; that of the file if it has only one. */
  readonly name: string;
  readonly files: readonly string[];
}

/** The folders of programs in the paths that tap reports. */
const PROGRAMS = /(?<=^|\s)\.tap[\\/]groups-[^\\/]+[\\/]\d+[\\/]/;

/** A line of tap without the folder of a program, so that it names the test file. */
export const withoutProgram = (line: string): string => line.replace(PROGRAMS, '');

/** Folders whose files run in a process of their own: they measure it, end it or start others. */
const ALONE = ['faults', 'process', 'sockets'];

/** Files that measure or change their own process. */
const ALONE_FILES = [
  'test/db/embedded.test.ts',
  'test/ingest/memory.test.ts',
  'test/search/cost.test.ts',
];

/** Longer groups would leave the other jobs idle at the end of a run. */
const FILES_MAX = 12;

const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const GROUP = JSON.stringify(fileOf('group.ts'));
const OWN_PROCESS = JSON.stringify(fileOf('own-process.ts'));

const folderOf = (path: string): string => path.split(/[\\/]/)[1] ?? '';

/** Merges lists so that each is spread evenly over the result. */
function spread<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const placed = lists.flatMap((list) =>
    list.map((item, at) => ({ item, place: (at + 0.5) / list.length })),
  );
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

/**
 * Splits test files into groups, in the order in which they should run: files that need a process
 * of their own, and groups of one folder. Faults mostly wait and groups mostly calculate, so each
 * kind is spread over the run.
 */
export function groupsOf(paths: readonly string[]): readonly Group[] {
  const isAlone = (path: string): boolean =>
    ALONE.includes(folderOf(path)) || ALONE_FILES.includes(path.replaceAll('\\', '/'));
  const folders = Map.groupBy(
    paths.filter((path) => !isAlone(path)),
    folderOf,
  );
  const shared = [...folders].flatMap(([folder, files]) => {
    const count = Math.ceil(files.length / FILES_MAX);
    return Array.from({ length: count }, (_, at) => ({
      name: `${folder}-${at + 1}.test.mjs`,
      files: files.filter((_, index) => index % count === at),
    }));
  });
  const alone = paths.filter(isAlone).map((path) => ({ name: path, files: [path] }));
  return spread([shared, ...Map.groupBy(alone, ({ name }) => folderOf(name)).values()]);
}

/** Writes a program for each group into a folder, and returns their paths. Tap sorts by path. */
export async function writeGroups(groups: readonly Group[], folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const [at, { name, files }] of groups.entries()) {
    const path = join(folder, String(at + 1).padStart(3, '0'), name);
    const [only] = files.filter((file) => file === name);
    const program = only
      ? `import ${OWN_PROCESS};\nawait import(${JSON.stringify(resolve(only))});\n`
      : `import { runGroup } from ${GROUP};\nawait runGroup(${JSON.stringify(files)});\n`;
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, program);
    paths.push(path);
  }
  return paths;
}
