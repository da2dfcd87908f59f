import type { Command } from 'commander';
import { revokeKey } from '../../auth/keys.ts';
import { withDatabase } from '../database.ts';
import { addAudit, addLists } from './look.ts';
import { addCreate, addRotate } from './make.ts';
import { actor, printKey, printKeyData } from './shown.ts';

function addRevoke(keys: Command): void {
  keys
    .command('revoke')
    .summary('end a key for good')
    .description('Ends a key for good. A key that was revoked before keeps its first reason.')
    .argument('<id>', 'the 10 characters after cps_live_')
    .requiredOption('--reason <text>', 'why; kept with the key and in the audit table')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Example:
  npm run --silent prices -- keys revoke 7hQ2mB9xTa --reason "left the company"`,
    )
    .action(async (id: string, options: { reason: string; json?: true }) => {
      const key = await withDatabase({ schema: true }, ({ db }) =>
        revokeKey(db, id, options.reason, { actor: actor() }),
      );
      if (options.json) printKeyData(key);
      else printKey(key);
    });
}

/** Adds `keys create`, `list`, `show`, `rotate`, `revoke` and `audit`. */
export function addKeyCommands(program: Command): void {
  const keys = program
    .command('keys')
    .summary('make, list, rotate and revoke API keys')
    .description('Makes, lists, shows, rotates and revokes API keys.');
  addCreate(keys);
  addLists(keys);
  addRotate(keys);
  addRevoke(keys);
  addAudit(keys);
}
