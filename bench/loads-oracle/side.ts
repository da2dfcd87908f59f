import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { Checkout } from './checkout.ts';
import { BASE } from './csv-files.ts';
import type { CommandOutcome } from './runner.ts';
import { type DatabaseNames, namesOf, stateOf } from './state.ts';
import { BATCH, type Step } from './steps.ts';

/** Address of another database of the same server. */
export function siblingOf(url: string, database: string): string {
  const address = new URL(url);
  address.pathname = `/${database}`;
  return address.href;
}

/** A checkout with a database of its own for one sequence. */
export class Side {
  readonly checkout: Checkout;
  readonly url: string;
  private readonly folder: string;
  private readonly began: string;
  private readonly client: pg.Client;

  private constructor(checkout: Checkout, url: string, folder: string, began: string) {
    this.checkout = checkout;
    this.url = url;
    this.folder = folder;
    this.began = began;
    this.client = new pg.Client({ connectionString: url });
  }

  /** @param began times from then on are times of the run, RFC 3339 in UTC */
  static async open(checkout: Checkout, url: string, folder: string, began: string): Promise<Side> {
    const side = new Side(checkout, url, folder, began);
    await mkdir(folder, { recursive: true });
    await side.client.connect();
    return side;
  }

  close(): Promise<void> {
    return this.client.end();
  }

  /** Writes the files of a step and runs its command. */
  async take({ words, files }: Step): Promise<CommandOutcome> {
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(this.folder, name), content);
    }
    return this.checkout.run(this.url, this.folder, await this.numbered(words));
  }

  names(): Promise<DatabaseNames> {
    return namesOf(this.client, this.began);
  }

  /** All rows by table, in a notation that both sides share. */
  async state(): Promise<ReadonlyMap<string, readonly string[]>> {
    return stateOf(this.client, await this.names());
  }

  /** Replaces placeholders by the batch numbers of this side. */
  private async numbered(words: readonly string[]): Promise<readonly string[]> {
    if (!words.some((each) => BATCH.test(each))) return words;
    const { rows } = await this.client.query<{ id: number; status: string }>(
      'select id, status from load_batch order by id desc',
    );
    return words.map((each) => {
      const [, which, back] = BATCH.exec(each) ?? [];
      if (which === undefined) return each;
      const all = rows.filter(({ status }) => which === 'batch' || status === which);
      return String(all[Number(back)]?.id ?? 4_000_000);
    });
  }
}

/** Migrates and seeds a database, and loads the prices with which every sequence starts. */
export async function prepare(checkout: Checkout, url: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'base.ndjson'), BASE);
  for (const words of [
    ['db', 'migrate'],
    ['db', 'seed', '--reference'],
    ['load', 'ndjson', 'base.ndjson'],
  ]) {
    const { exitCode, stdout, stderr } = await checkout.run(url, folder, words);
    if (exitCode === 0) continue;
    throw new Error(`prices ${words.join(' ')} ended with ${exitCode}: ${stdout}${stderr}`);
  }
}
