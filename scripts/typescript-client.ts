import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PLAIN_ENV } from '../test/support/process/plain-env.ts';

/** The folder of openapi-typescript and its TypeScript version. */
export const TOOLS = fileURLToPath(new URL('../test/client/', import.meta.url));
const SOURCE = fileURLToPath(new URL('../clients/typescript/', import.meta.url));
const OPENAPI = fileURLToPath(new URL('../openapi.yaml', import.meta.url));

const options = { cwd: TOOLS, env: PLAIN_ENV };

/** Installs the tools of a folder from their lockfile. */
export async function installTools(folder: string): Promise<void> {
  const args = ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  await promisify(execFile)('npm', args, { ...options, cwd: folder });
}

/** Writes the generated files of the TypeScript client into a folder, by the installed tools. */
export async function makeTypescriptClient(folder: string): Promise<void> {
  const run = (tool: string, ...args: string[]) =>
    promisify(execFile)(process.execPath, [join(TOOLS, 'node_modules', tool), ...args], options);
  const schema = join(folder, 'schema.d.ts');
  await run('openapi-typescript/bin/cli.js', OPENAPI, '--immutable', '--output', schema);
  const args = ['--project', SOURCE, '--outDir', folder];
  // Comments are for editors, which read the declarations; they are a tenth of the program.
  await run('typescript/bin/tsc', ...args, '--removeComments', '--declaration', 'false');
  await run('typescript/bin/tsc', ...args, '--emitDeclarationOnly');
}
