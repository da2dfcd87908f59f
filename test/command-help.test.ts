import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import t from 'tap';
import { scanForKeys } from '../src/auth/key-scan.ts';
import { makeProgram } from '../src/commands/program.ts';

/** What a command prints with --help, as one line. */
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
    t.same(markedOf(makeProgram()), [
      'load table --map',
      'load undo --reason',
      'withdraw --reason',
      'keys create --name',
      'keys create --scope',
      'keys revoke --reason',
      'token create --scope',
    ]);
  },
);

t.test('the states that a scan tells are explained, also that of the example', async (t) => {
  const keys = makeProgram().commands.find((each) => each.name() === 'keys');
  const scan = keys?.commands.find((each) => each.name() === 'scan');
  const page = await readFile(new URL('../docs/authentication.md', import.meta.url), 'utf8');
  const help = scan === undefined ? '' : helpOf(scan);
  for (const text of [help, page.replaceAll('`', '').replace(/\s+/g, ' ')]) {
    t.match(text, /active, expired or revoked.*, or unknown where this database has no such key/);
  }
  const examples: string[] = [];
  for await (const { id } of scanForKeys(Readable.from([Buffer.from(page)]))) examples.push(id);
  t.same(examples, ['7Kq3ZbT0xP'], 'it is found where the page is piped in');
});
