import { setTimeout as pause } from 'node:timers/promises';
import { MARKETS } from '../../catalog/markets.ts';
import { OPERATIONS } from '../../contract/schemas/changes.ts';
import { readCommandConfig } from '../../process/environment.ts';
import { runWebhooks } from '../../process/webhooks.ts';
import { EXIT, UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { LATE } from '../../webhooks/message.ts';
import { networksOf } from '../../webhooks/receiver.ts';
import {
  addTest,
  addWebhook,
  listWebhooks,
  messageState,
  type NewWebhookInfo,
  removeWebhook,
  rotateSecret,
  SUBSCRIBED_CODES_MAX,
  type WebhookInfo,
} from '../../webhooks/subscriptions.ts';
import {
  actorOf,
  by,
  type CommandResult,
  checkKnown,
  checkMarkets,
  command,
  json,
  option,
  repeatable,
  required,
} from '../command.ts';
import { withDatabase } from '../database.ts';
import { spanOf } from '../keys/arguments.ts';
import { printLines, printTable, timeText } from '../output.ts';

/*
 * The commands of `webhooks`: they add, list, test, rotate and remove subscriptions, and send the
 * messages.
 */

const listText = (values: readonly string[] | null): string => values?.join(' ') ?? 'all';

const SHOWN_ONCE = 'The secret is shown this once. The receiver checks the signatures with it.';

/** The public data of a subscription, one line per member. */
function linesOf(webhook: WebhookInfo): string[] {
  const { id, url, key, status, markets, codes, operations, oldSecretUntil } = webhook;
  return [
    `id          ${id}`,
    `receiver    ${url}`,
    `key         ${key}`,
    `status      ${status}`,
    `markets     ${listText(markets)}`,
    `codes       ${listText(codes)}`,
    `operations  ${listText(operations)}`,
    ...(oldSecretUntil === null ? [] : [`old secret  works until ${timeText(oldSecretUntil)}`]),
  ];
}

/** The answer of a command that made a secret. */
const withSecret = (webhook: NewWebhookInfo): CommandResult => ({
  data: webhook,
  print: () => printLines(...linesOf(webhook), '', webhook.secret, '', SHOWN_ONCE),
});

interface AddOptions {
  readonly key: string;
  readonly market: string[];
  readonly codes: string[];
  readonly operations: string[];
  readonly by?: string;
}

/** Texts of an option that may be repeated, and may hold several each; null without one. */
function valuesOf(given: readonly string[]): readonly string[] | null {
  const all = given.flatMap((each) => each.split(/[\s,]+/)).filter((each) => each !== '');
  return all.length === 0 ? null : [...new Set(all)];
}

/** @throws UsageError for codes that no price can have, or too many */
function checkCodes(codes: readonly string[] | null): void {
  const wrong = codes?.find((each) => !/^[!-~]{1,64}$/.test(each));
  if (wrong !== undefined) {
    throw new UsageError(`--codes: "${wrong.slice(0, 64)}" is not the code of a price`);
  }
  if (codes !== null && codes.length > SUBSCRIBED_CODES_MAX) {
    throw new UsageError(
      `--codes: at most ${SUBSCRIBED_CODES_MAX} codes; name a market, or add further webhooks`,
    );
  }
}

const addAdd = command({
  name: 'add',
  summary: 'send doorbells to a receiver; its secret is shown once',
  description:
    'Adds a webhook: each commit that changes a price of the filters sends one signed message to ' +
    'the address, and so do prices that become late.',
  args: [['<url>', 'the receiver: https://…, or http://… in a network of WEBHOOK_NETWORKS']],
  options: [
    required('--key <id>', 'public id of the API key whose scopes bound the messages'),
    repeatable('--market <slug>', 'only this market; repeat it for several'),
    repeatable('--codes <codes>', 'only prices with these codes; repeat it, or use commas'),
    repeatable(
      '--operations <kinds>',
      `only these kinds: ${[...OPERATIONS, LATE].join(', ')}; repeat it, or use commas`,
    ),
    by(),
    json(),
  ],
  help: `
Examples:
  ${PROGRAM} webhooks add https://desk.example.com/prices --key 7hQ2mB9xTa
  ${PROGRAM} webhooks add https://desk.example.com/late --key 7hQ2mB9xTa --operations late`,
  async run(url: string, options: AddOptions) {
    const [markets, codes, operations] = [options.market, options.codes, options.operations].map(
      valuesOf,
    );
    checkMarkets(markets ?? []);
    checkCodes(codes ?? null);
    const kinds = [...OPERATIONS, LATE];
    const hint = `the kinds are ${kinds.join(', ')}`;
    checkKnown('--operations', 'kind of change', operations ?? [], kinds, hint);
    const sorted =
      markets && MARKETS.map(({ slug }) => slug).filter((each) => markets.includes(each));
    const filter = {
      markets: sorted ?? null,
      codes: codes ?? null,
      operations: operations ?? null,
    };
    const actor = actorOf(options);
    return withSecret(
      await withDatabase(({ db, config }) => {
        const networks = networksOf(config.WEBHOOK_NETWORKS);
        return addWebhook(db, { url, key: options.key, ...filter }, networks, { actor });
      }),
    );
  },
});

function printWebhooks(webhooks: readonly WebhookInfo[]): void {
  printTable(webhooks, {
    id: ({ id }) => id,
    receiver: ({ url }) => url,
    key: ({ key }) => key,
    status: ({ status }) => status,
    delivered: ({ deliveredAt }) => deliveredAt && timeText(deliveredAt),
    waiting: ({ waiting }) => waiting,
    since: ({ waitingSince }) => waitingSince && timeText(waitingSince),
    'last result': ({ lastResult }) => lastResult,
    markets: ({ markets }) => listText(markets),
    codes: ({ codes }) => listText(codes),
    operations: ({ operations }) => listText(operations),
  });
}

const addList = command({
  name: 'list',
  summary: 'every webhook, with the messages that wait',
  description: 'Lists every webhook, oldest first, with the messages that wait; never a secret.',
  options: [json()],
  help: `\nExample:\n  ${PROGRAM} webhooks list`,
  async run() {
    const webhooks = await withDatabase(({ db }) => listWebhooks(db));
    return { data: webhooks, print: () => printWebhooks(webhooks) };
  },
});

const ID = 'the id of the webhook, as `webhooks list` shows it';

/** Longest wait for the outcome of a test: an attempt takes at most 15 s. */
const TEST_MS_MAX = 20_000;
const TEST_POLL_MS = 200;

const addTestCommand = command({
  name: 'test',
  summary: 'send a test message, and show what the receiver answered',
  description:
    'Sends a message of the type webhook.test, once, on the way of all messages, and waits for ' +
    'the answer of the receiver. The exit code is 1 if it was not delivered.',
  args: [['<id>', ID]],
  options: [json()],
  help: `\nExample:\n  ${PROGRAM} webhooks test wh_4fK2mB9xTa`,
  async run(id: string) {
    const { outcome, result } = await withDatabase(async ({ db, signal }) => {
      const message = await addTest(db, id);
      const endMs = Date.now() + TEST_MS_MAX;
      let state = await messageState(db, message);
      while (state.outcome === null && Date.now() < endMs) {
        await pause(TEST_POLL_MS, undefined, { signal });
        state = await messageState(db, message);
      }
      return state;
    });
    const waits = 'nothing sent it yet: does `webhooks run` run?';
    const text = outcome === null ? waits : `${outcome}: ${result ?? ''}`;
    return {
      data: { outcome: outcome ?? 'waiting', result },
      print: () => printLines(text),
      exitCode: outcome === 'delivered' ? EXIT.ok : EXIT.failed,
    };
  },
});

const addRotate = command({
  name: 'rotate',
  summary: 'make a new secret; the old one works on for a while',
  description:
    'Makes a new secret. Until the end of the grace, each message has a signature of both secrets.',
  args: [['<id>', ID]],
  options: [
    option('--grace <span>', 'how long the old secret works on: 24h, 15m, 7d, or 0').default('24h'),
    json(),
  ],
  help: `\nExample:\n  ${PROGRAM} webhooks rotate wh_4fK2mB9xTa --grace 7d`,
  async run(id: string, { grace }: { grace: string }) {
    const graceMs = spanOf('--grace', grace);
    return withSecret(await withDatabase(({ db }) => rotateSecret(db, id, graceMs)));
  },
});

const addRemove = command({
  name: 'remove',
  summary: 'end a webhook, with the messages that wait',
  description: 'Removes a webhook with its secrets and with the messages that wait.',
  args: [['<id>', ID]],
  options: [by(), json()],
  help: `\nExample:\n  ${PROGRAM} webhooks remove wh_4fK2mB9xTa`,
  async run(id: string, options: { by?: string }) {
    const actor = actorOf(options);
    const removed = await withDatabase(({ db }) => removeWebhook(db, id, { actor }));
    return { data: removed, print: () => printLines(`The webhook ${id} was removed.`) };
  },
});

const addRun = command({
  name: 'run',
  summary: 'send the messages of all webhooks, until it is stopped',
  description:
    'Follows the change feed from a stored position, and sends the messages of all webhooks ' +
    'until SIGINT or SIGTERM. Several may run: they share the work. On the embedded database ' +
    'npm start runs it within.',
  options: [],
  help: `
DATABASE_URL names the account prices_webhooks, and PUBLIC_URL the address of the service that
messages link to. Private receivers need WEBHOOK_NETWORKS.

Example:
  ${PROGRAM} webhooks run`,
  run: () => runWebhooks(readCommandConfig()),
});

/** The commands for webhooks. */
export const WEBHOOK_COMMANDS = [addAdd, addList, addTestCommand, addRotate, addRemove, addRun];
