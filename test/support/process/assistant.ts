import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Client, type ClientOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type t from 'tap';

const COMMANDS = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));

/** An answer of a tool, as tests read it. */
export interface ToolAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
  readonly data: any;
  readonly text: string;
  readonly isError: boolean;
}

/** A client of the protocol whose server is the command `mcp`. */
export interface Assistant {
  readonly client: Client;
  readonly pid: number;
  /** The standard error of the command. */
  readonly stderr: () => string;
  ask(
    tool: string,
    given?: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<ToolAnswer>;
}

type Env = Readonly<Record<string, string>>;

/** The environment of the command, without the variables of tap. */
export const commandEnv = (env: Env): Record<string, string> => {
  const { NODE_OPTIONS: _options, TAP: _tap, ...inherited } = process.env;
  return { ...inherited, ...env } as Record<string, string>;
};

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** The command `mcp` of this checkout, with more arguments. */
export const mcp = (...args: readonly string[]): Command => ({
  command: process.execPath,
  args: [COMMANDS, 'mcp', ...args],
});

/** Starts a server of the protocol, `mcp` unless another command is given, and connects to it. */
export async function assistant(
  test: Pick<typeof t, 'teardown'>,
  env: Env,
  { command, args }: Command = mcp(),
  options: ClientOptions = {},
): Promise<Assistant> {
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: commandEnv(env),
    cwd: tmpdir(),
    stderr: 'pipe',
  });
  let said = '';
  transport.stderr?.on('data', (chunk) => {
    said += chunk;
  });
  const client = new Client({ name: 'test', version: '1' }, options);
  test.teardown(() => client.close());
  await client.connect(transport);
  return {
    client,
    pid: transport.pid ?? 0,
    stderr: () => said,
    async ask(tool, given = {}, signal) {
      const answer = await client.callTool(
        { name: tool, arguments: given },
        signal ? { signal } : {},
      );
      const [content] = answer.content as { text: string }[];
      return {
        data: answer.structuredContent,
        text: content?.text ?? '',
        isError: answer.isError === true,
      };
    },
  };
}
