import { text } from 'node:stream/consumers';
import {
  applyRoles,
  LOGINS,
  type Login,
  ROLE_PREFIX,
  roleName,
  rolesSql,
} from '../../db/migrate/roles.ts';
import { UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { command, json, option } from '../command.ts';
import { withDatabase } from '../database.ts';
import { printLines } from '../output.ts';

interface RolesOptions {
  readonly prefix: string;
  readonly print?: true;
  readonly passwords?: true;
}

const isLogin = (name: string): name is Login => (LOGINS as readonly string[]).includes(name);

/** Parses lines of `<account> <password>`; the password is everything after the first space. */
function passwordsOf(lines: string): Map<Login, string> {
  const passwords = new Map<Login, string>();
  for (const [index, line] of lines.split(/\r?\n/).entries()) {
    if (line === '') continue;
    const [, login = '', password] = /^(\S*) (.*)$/.exec(line) ?? [];
    // The message omits the line, which may be a password.
    if (password === undefined || !isLogin(login) || passwords.has(login)) {
      throw new UsageError(
        `line ${index + 1} of the input is not one of ${LOGINS.join(', ')}, a space and a ` +
          'password, each once',
      );
    }
    passwords.set(login, password);
  }
  return passwords;
}

/** Adds `db roles`. */
export const addRoles = command({
  name: 'roles',
  summary: 'make the accounts of the database, each with the rights it needs',
  description:
    'Creates the accounts of the service, loads, keys, webhooks and migrations, and grants each ' +
    'exactly the rights that it needs. Can be repeated.',
  options: [
    option('--prefix <name>', 'what the names of the accounts begin with').default(ROLE_PREFIX),
    option('--passwords', 'read passwords from the input, a line each: service <password>'),
    option('--print', 'only print the SQL, for psql'),
    json(),
  ],
  help: `
DATABASE_URL must name an account that may create roles and that owns the database, or a
superuser. A password has 8 to 256 printable characters of ASCII. It never appears on a
command line, and the server receives only its SCRAM verifier.

Examples:
  ${PROGRAM} db roles --print | less
  ${PROGRAM} db roles --passwords < passwords.txt`,
  async run(options: RolesOptions) {
    const { prefix } = options;
    if (options.print) {
      if (options.passwords) throw new UsageError('take one of --print and --passwords');
      process.stdout.write(await rolesSql(prefix));
      return;
    }
    const passwords = options.passwords ? passwordsOf(await text(process.stdin)) : new Map();
    await withDatabase(({ db }) => applyRoles(db, prefix, passwords), { schema: false });
    const accounts = LOGINS.map((login) => roleName(prefix, login));
    const set = [...passwords.keys()].map((login) => roleName(prefix, login));
    const lines = [
      `The accounts are there, with their rights: ${accounts.join(', ')}.`,
      set.length === 0
        ? 'No password was changed: give them with --passwords, or with \\password in psql.'
        : `Passwords were set for ${set.join(', ')}.`,
    ];
    return { data: { accounts, passwordsSet: set }, print: () => printLines(...lines) };
  },
});
