import { chmod, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import t from 'tap';
import { findTools } from '../../src/cli/db/drill.ts';
import { makeFolder } from '../support/run/folders.ts';

/** A stub of the PostgreSQL tools; records its arguments beside the dump. */
const PROGRAM = `#!/bin/sh
if [ "$1" = --version ]; then echo "pg_dump (PostgreSQL) 18.1"; exit; fi
printf '%s\\n' "password $PGPASSWORD" "$@" > "$(dirname "$0")/called"
`;

t.test(
  'a password is given to the tools by the environment, and never as an argument',
  async (t) => {
    const { path, remove } = await makeFolder();
    t.teardown(remove);
    for (const name of ['pg_dump', 'pg_restore']) {
      await writeFile(join(path, name), PROGRAM);
      await chmod(join(path, name), 0o755);
    }
    const { PATH, PGPASSWORD } = process.env;
    t.teardown(() => Object.assign(process.env, { PATH }));
    process.env['PATH'] = [path, PATH].join(delimiter);
    process.env['PGPASSWORD'] = 'of the environment';
    t.teardown(() => {
      if (PGPASSWORD === undefined) delete process.env['PGPASSWORD'];
      else process.env['PGPASSWORD'] = PGPASSWORD;
    });
    const tools = await findTools();
    t.equal(tools?.version, 18);
    const cases = {
      'postgres://me:s%40cret@db.example/prices': 's@cret',
      'postgres://me@db.example/prices?password=s%40cret': 's@cret',
      'postgres://me@db.example/prices': 'of the environment',
    };
    for (const [url, password] of Object.entries(cases)) {
      await tools?.dump(url, 'file');
      const [told, ...args] = (await readFile(join(path, 'called'), 'utf8')).trim().split('\n');
      t.equal(told, `password ${password}`, url);
      t.equal(args.at(-1), '--dbname=postgres://me@db.example/prices');
    }
  },
);
