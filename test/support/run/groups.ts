import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Test files that share a process, and the name of their process in the output. */
export interface Group {
  readonly name: string;
  readonly files: readonly string[];
}

/** Folders whose files run in a process of their own: they measure it, end it or start others. */
const ALONE = ['explorer', 'faults', 'process', 'sockets'];

/** Files that measure or change their own process. */
const ALONE_FILES = [
  'test/db/embedded.test.ts',
  'test/ingest/memory.test.ts',
  'test/search/cost.test.ts',
];

/** Longer groups would leave the other job idle at the end of a run. */
const FILES_MAX = 8;

const GROUP = fileURLToPath(new URL('group.ts', import.meta.url));

const folderOf = (path: string): string => path.split(/[\\/]/)[1] ?? '';

/** Splits test files into those that need a process of their own, and groups of one folder. */
export function groupsOf(paths: readonly string[]): {
  readonly alone: readonly string[];
  readonly groups: readonly Group[];
} {
  const isAlone = (path: string): boolean =>
    ALONE.includes(folderOf(path)) || ALONE_FILES.includes(path.replaceAll('\\', '/'));
  const folders = Map.groupBy(
    paths.filter((path) => !isAlone(path)),
    folderOf,
  );
  const groups = [...folders].flatMap(([folder, files]) => {
    const count = Math.ceil(files.length / FILES_MAX);
    return Array.from({ length: count }, (_, at) => ({
      name: `${folder}-${at + 1}`,
      files: files.filter((_, index) => index % count === at),
    }));
  });
  return { alone: paths.filter(isAlone), groups };
}

/** Writes a program for each group into a folder, and returns their paths. */
export async function writeGroups(groups: readonly Group[], folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const { name, files } of groups) {
    const path = join(folder, `${name}.test.mjs`);
    const program = `import { runGroup } from ${JSON.stringify(GROUP)};
await runGroup(${JSON.stringify(files)});
`;
    await writeFile(path, program);
    paths.push(path);
  }
  return paths;
}
