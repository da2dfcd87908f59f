import type pg from 'pg';
import { randomOf } from '../../conversion/support.ts';
import { insertOf, OF_COPPER, pointRow, priceRow } from '../database/minimal-data.ts';

/** A row of the model: content and revision. */
interface Written {
  readonly text: string;
  readonly revision: number;
}

interface ModelPrice extends Written {
  readonly code: string;
  readonly points: Map<string, Written>;
}

/** The expected content of the tables, by price id. */
type Model = Map<number, ModelPrice>;

/** A change in the model; `date` is null for the price itself. */
export interface ModelChange {
  readonly revision: number;
  readonly priceId: number;
  readonly date: string | null;
  readonly operation: string;
}

/** Random commits of every kind, with their changes by a model in plain JavaScript. */
export interface Publisher {
  /** All committed changes, ordered by commit, price and date. */
  readonly changes: readonly ModelChange[];
  /** Runs a transaction of random steps; some are rolled back. */
  transact(): Promise<void>;
}

const DATES = ['2024-01-02', '2024-01-03', '2024-01-04', '2024-01-05', '1995-07-31', '2025-12-31'];
const CODES = ['R-1', 'R-2', 'R-3', 'R-4', 'R-5'];

const copyOf = (model: Model): Model =>
  new Map([...model].map(([id, price]) => [id, { ...price, points: new Map(price.points) }]));

/** The difference of two snapshots, by the revision of each row. */
function difference(before: Model, after: Model, revision: number): ModelChange[] {
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b);
  const operationOf = (was: Written | undefined, is: Written | undefined, words: string[]) => {
    if (is) return is.revision === revision ? words[was ? 1 : 0] : undefined;
    return was && 'withdrawn';
  };
  return ids.flatMap((priceId) => {
    const was = before.get(priceId);
    const is = after.get(priceId);
    const dates = new Set([...(was?.points.keys() ?? []), ...(is?.points.keys() ?? [])]);
    const own = operationOf(was, is, ['price-added', 'price-changed']);
    const points = [...dates].sort().map((date) => ({
      date,
      operation: operationOf(was?.points.get(date), is?.points.get(date), [
        'published',
        'corrected',
      ]),
    }));
    return [{ date: null, operation: own }, ...points].flatMap(({ date, operation }) =>
      operation ? [{ revision, priceId, date, operation }] : [],
    );
  });
}

/** The steps of a transaction; each changes the tables and the model alike. */
class Steps {
  model: Model;
  readonly #client: pg.ClientBase;
  readonly #revision: number;
  readonly #random: () => number;

  constructor(client: pg.ClientBase, model: Model, revision: number, random: () => number) {
    this.#client = client;
    this.model = model;
    this.#revision = revision;
    this.#random = random;
  }

  pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#random() * all.length)] as T;
  }

  /** Runs one random step, which may be a no-op. */
  async any(): Promise<void> {
    const { put, put: again, withdraw, republish, rename, remove, add, undo } = this;
    await this.pick([put, put, again, withdraw, republish, rename, remove, add, undo]).call(this);
  }

  #write(text: string): Written {
    return { text, revision: this.#revision };
  }

  #price(): [number, ModelPrice] {
    return this.pick([...this.model]);
  }

  /** Publishes or corrects a point; a correction may keep the value. */
  async put(): Promise<void> {
    const [id, { points }] = this.#price();
    const date = this.pick(DATES);
    const mid = this.pick(['1', '2.5', '-3', '0']);
    const values = { price_id: String(id), date: `'${date}'`, low: 'null', high: 'null', mid };
    await this.#client.query(
      `${insertOf('series', pointRow(values))} on conflict (price_id, date)
        do update set mid = excluded.mid, corrections = series.corrections + 1`,
    );
    points.set(date, this.#write(mid));
  }

  async withdraw(): Promise<void> {
    const [id, { points }] = this.#price();
    const date = this.pick(DATES);
    await this.#client.query('delete from series where price_id = $1 and date = $2', [id, date]);
    points.delete(date);
  }

  /** Deletes all points of a price and publishes some of them again. */
  async republish(): Promise<void> {
    const [id, { points }] = this.#price();
    const kept = [...points.keys()].filter(() => this.#random() < 0.7);
    await this.#client.query('delete from series where price_id = $1', [id]);
    points.clear();
    for (const date of kept) {
      const values = { price_id: String(id), date: `'${date}'`, low: 'null', high: 'null' };
      await this.#client.query(insertOf('series', pointRow({ ...values, mid: '7' })));
      points.set(date, this.#write('7'));
    }
  }

  async rename(): Promise<void> {
    const [id, price] = this.#price();
    const name = this.pick(['One name', 'Another name']);
    await this.#client.query('update price set name = $2 where id = $1', [id, name]);
    this.model.set(id, { ...price, ...this.#write(name) });
  }

  async remove(): Promise<void> {
    const [id, { code }] = this.#price();
    if (!CODES.includes(code)) return;
    await this.#client.query('delete from series where price_id = $1', [id]);
    await this.#client.query('delete from price where id = $1', [id]);
    this.model.delete(id);
  }

  /** Adds a price under an unused code, which an earlier price may have had. */
  async add(): Promise<void> {
    const taken = new Set([...this.model.values()].map((each) => each.code));
    const code = CODES.find((each) => !taken.has(each));
    if (code === undefined) return;
    const row = priceRow(code, code < 'R-3' ? OF_COPPER : {});
    const { rows } = await this.#client.query(`${insertOf('price', row)} returning id`);
    this.model.set(rows[0].id, { code, points: new Map(), ...this.#write('new') });
  }

  /** Runs some steps and rolls them back to a savepoint. */
  async undo(): Promise<void> {
    const before = copyOf(this.model);
    await this.#client.query('savepoint undone');
    await this.put();
    await this.any();
    await this.#client.query('rollback to savepoint undone; release savepoint undone');
    this.model = before;
  }
}

/** A publisher of random commits to a database filled by `writeMinimalData`. */
export async function publisherOn(pool: pg.Pool, seed: number): Promise<Publisher> {
  const random = randomOf(seed);
  const { rows } = await pool.query('select id, code from price');
  let model: Model = new Map(
    rows.map(({ id, code }) => [id, { code, points: new Map(), text: 'new', revision: 1 }]),
  );
  const changes = difference(new Map(), model, 1);
  const transact = async (): Promise<void> => {
    const client = await pool.connect();
    try {
      await client.query('begin');
      const opened = await client.query("select open_revision('random') as number");
      const revision = Number(opened.rows[0].number);
      const steps = new Steps(client, copyOf(model), revision, random);
      await steps.put();
      for (let rest = Math.floor(random() * 8); rest > 0; rest -= 1) await steps.any();
      const commits = random() < 0.85;
      // Before the commit: the next writer may get the lock before this commit returns.
      if (commits) {
        changes.push(...difference(model, steps.model, revision));
        model = steps.model;
      }
      await client.query(commits ? 'commit' : 'rollback');
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
  };
  return { changes, transact };
}
