import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { copyOf, runIn } from '../support/process/project-copy.ts';

/** Inserts a text before the first occurrence of another in a file. */
async function insert(file: string, before: string, text: string): Promise<void> {
  const old = await readFile(file, 'utf8');
  if (!old.includes(before)) throw new Error(`${file} has no ${before}`);
  await writeFile(
    file,
    old.replace(before, () => `${text}${before}`),
  );
}

t.test('a setting and an error code added by CONTRIBUTING.md pass their tests', async (t) => {
  const folder = await copyOf(t);
  const run = runIn(folder);
  const file = (path: string): string => join(folder, path);

  const setting = "  ANSWER_TRIAL_MAX: whole(7, 1, 9, 'Answers of the trial'),\n";
  await insert(file('src/config/settings.ts'), '  CHANGES_WAITING_MAX:', setting);
  const documented = '# Answers of the trial (1 to 9)\n#ANSWER_TRIAL_MAX=7\n\n';
  await insert(file('.env.example'), '# Requests of one credential that may wait', documented);

  const code = "  trial_ended: [503, 'The trial has ended'],\n";
  await insert(file('src/errors.ts'), '  overloaded: [503', code);
  await run('src/cli/main.ts', 'openapi', '--write');
  t.match(await readFile(file('openapi.yaml'), 'utf8'), /^ +- trial_ended$/m);

  t.match(
    await run('test/run.ts', 'test/config/config.test.ts', 'test/openapi/openapi.test.ts'),
    /\n\d+ passed, 0 failed\n$/,
  );
});
