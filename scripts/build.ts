// Compiles the sources to dist for the package: Node refuses TypeScript in node_modules.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');

rmSync(DIST, { recursive: true, force: true });
const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
execFileSync(process.execPath, [compiler, '--project', join(ROOT, 'tsconfig.build.json')], {
  stdio: 'inherit',
});

/** Assets that the program reads at run time: SQL, YAML, pages, and documents. */
const assets = [
  ...globSync('src/**/*.{sql,yaml,js,css,svg,json}', { cwd: ROOT }),
  ...globSync('seeds/*.yaml', { cwd: ROOT }),
  // The recorded hash of a migration is that of its source.
  ...globSync('migrations/*.ts', { cwd: ROOT }),
  // The pages of the help.
  ...['explorer', 'formats', 'conversion'].map((name) => `docs/${name}.md`),
  'openapi.yaml',
  'package.json',
];
for (const file of assets) {
  mkdirSync(dirname(join(DIST, file)), { recursive: true });
  copyFileSync(join(ROOT, file), join(DIST, file));
}
chmodSync(join(DIST, 'src', 'cli', 'bin.js'), 0o755);
