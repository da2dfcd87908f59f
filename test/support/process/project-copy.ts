import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type t from 'tap';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Entries of a working copy that the copy omits. */
const EXCLUDED = new Set(['node_modules', '.git', '.data', 'bench']);

/** A copy of the project, with the packages of this one. */
export async function copyOf(test: Pick<typeof t, 'teardown'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'commodity-prices-copy-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const name of await readdir(ROOT)) {
    // Other tests may be installing packages meanwhile.
    const filter = (path: string): boolean => basename(path) !== 'node_modules';
    if (EXCLUDED.has(name)) continue;
    await cp(join(ROOT, name), join(folder, name), { recursive: true, filter });
  }
  for (const packages of ['node_modules', 'test/client/node_modules']) {
    await symlink(join(ROOT, packages), join(folder, packages));
  }
  return folder;
}

/** Runs Node in a copy. @returns standard output; a failed run rejects with its output */
export const runIn =
  (folder: string) =>
  async (...args: string[]): Promise<string> => {
    // A copy has its own OpenAPI document.
    const { TAP: _tap, NODE_OPTIONS: _options, TEST_OPENAPI_JSON: _json, ...env } = process.env;
    const options = { cwd: folder, env, maxBuffer: 16_777_216 };
    const ran = promisify(execFile)(process.execPath, args, options);
    return (await ran.catch((error) => Promise.reject(new Error(`${error}\n${error.stdout}`))))
      .stdout;
  };
