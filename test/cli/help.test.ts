import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import t from 'tap';
import { newKey } from '../../src/auth/keys/format.ts';
import { makeProgram } from '../../src/cli/program.ts';

/** The --help output of a command, as one line. */
function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  return help.replace(/\s+/g, ' ');
}

/** Those of a command's options, and of all commands below it, that its help marks as required. */
function markedOf(command: Command, words: readonly string[] = []): string[] {
  const help = helpOf(command);
  const marked = command.options
    .filter(({ flags, description }) => help.includes(`${flags} ${description} (required)`))
    .map(({ long }) => [...words, long].join(' '));
  return [
    ...marked,
    ...command.commands.flatMap((each) => markedOf(each, [...words, each.name()])),
  ];
}

t.test(
  'the help marks the options that a command does not do without, and no others',
  async (t) => {
    t.same(markedOf(await makeProgram()), [
      'load table --map',
      'load undo --reason',
      'withdraw --reason',
      'keys create --name',
      'keys create --scope',
      'keys revoke --reason',
      'webhooks add --key',
      'token create --scope',
    ]);
  },
);

t.test('the rule for secret scanners finds every key, and nothing that is too short', async (t) => {
  const rule = await readFile(
    new URL('../../docs/examples/gitleaks.toml', import.meta.url),
    'utf8',
  );
  const [, pattern = ''] = /^regex = '''(.+)'''$/m.exec(rule) ?? [];
  const found = new RegExp(pattern);
  for (let times = 0; times < 100; times += 1) {
    const { text } = newKey();
    t.match(found.exec(`key="${text}",`), [text]);
    t.notMatch(text.slice(0, -1), found);
  }
  const page = await readFile(new URL('../../docs/authentication.md', import.meta.url), 'utf8');
  t.match(page, found, 'the example of the page has the form');
});
