import './own-process.ts';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import root, { type Test } from 'tap';

/** The scheme of the module that a grouped test file imports as `tap`. */
const SCHEME = 'tap-of:';

declare global {
  var groupedTests: Map<string, Test>;
}

/** Time in which a process ends after its last test. */
const END_MS = 30_000;

/** Ends a process that a leaked handle keeps running, and names the kinds of open handles. */
function endSoon(): void {
  const end = (): void => {
    const open = process.getActiveResourcesInfo().join(', ');
    process.stderr.write(`The tests have ended, and the process has not: ${open}\n`);
    process.exit(1);
  };
  setTimeout(end, END_MS).unref();
}

/**
 * Runs test files one after another in this process, each as a subtest with its path as the title.
 * A test file imports its subtest as the default export of `tap`, so that hooks and teardowns of a
 * file end with it. Node and the service are loaded once for all files: a fresh process costs 2 s
 * of CPU.
 */
export async function runGroup(paths: readonly string[]): Promise<void> {
  globalThis.groupedTests = new Map();
  registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL ?? '';
      const isGrouped = specifier === 'tap' && globalThis.groupedTests.has(parent);
      return isGrouped
        ? { url: `${SCHEME}${parent}`, shortCircuit: true }
        : next(specifier, context);
    },
    load(url, context, next) {
      if (!url.startsWith(SCHEME)) return next(url, context);
      const parent = JSON.stringify(url.slice(SCHEME.length));
      const source = `export default globalThis.groupedTests.get(${parent});`;
      return { format: 'module', source, shortCircuit: true };
    },
  });
  for (const path of paths) {
    const { href } = pathToFileURL(resolve(path));
    await root.test(path, async (t) => {
      globalThis.groupedTests.set(href, t);
      await import(href);
    });
  }
  endSoon();
}
