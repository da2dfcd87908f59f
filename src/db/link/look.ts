import type pg from 'pg';

/** What a look reads: epoch, version of the API keys, and the newest revision. */
export type LookRow = readonly [epoch: string, keysVersion: string, revision: string];

/** The statement of a look; it is prepared by the first one of a connection. */
export const LOOK = {
  name: 'look',
  text: `select epoch, keys_version || '.' || keys_change_id,
    coalesce((select concat_ws('.', number, commit_id) from revision
      order by number desc limit 1), '0') from service`,
};

/**
 * What the revisions after one, up to another, touched: of all revisions where the first is not the
 * commit that it was, as its number then came back. The last column says after which number.
 * Prepared, as planning it takes longer than reading.
 */
export const TOUCHED = {
  name: 'touched',
  text: `select s.scope, concat_ws('.', s.revision, r.commit_id), r.committed_at, s.after
    from (select coalesce(max(number), 0) as number from revision
      where number = $1 and commit_id = $2) as known
      cross join lateral (select scope, max(revision) as revision, known.number as after
        from revision_scope
        where revision > known.number and revision <= $3 group by scope) as s
      join revision as r on r.number = s.revision
    where require_commit($3, $4)`,
};

/** A message of PostgreSQL's protocol, version 3: its kind, its length, and what is in it. */
function message(kind: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind);
  head.writeInt32BE(4 + content.length, 1);
  return Buffer.concat([head, content]);
}

/** Bind without parameters and all in text, Execute for all rows, Sync: the same each time. */
const ASKED = Buffer.concat([
  message('B', Buffer.concat([Buffer.from(`\0${LOOK.name}\0`), Buffer.alloc(6)])),
  message('E', Buffer.alloc(5)),
  message('S', Buffer.alloc(0)),
]);

type Callback = (error: Error | null, row?: LookRow) => void;

/**
 * A look over a connection that has prepared it, as one write and without its description: each
 * request waits for one, so it costs as little as it can. The driver calls these methods.
 */
class QuickLook {
  callback: Callback;
  #row: LookRow | undefined;

  constructor(callback: Callback) {
    this.callback = callback;
  }

  submit({ stream }: pg.Connection): null {
    stream.write(ASKED);
    return null;
  }

  handleDataRow({ fields }: { readonly fields: LookRow }): void {
    this.#row = fields;
  }

  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#row);
  }
}

/** Looks over a connection that has prepared the statement. Throws what the database throws. */
export const quickLook = (client: pg.Client): Promise<LookRow | undefined> =>
  new Promise((resolve, reject) => {
    client.query(new QuickLook((error, row) => (error ? reject(error) : resolve(row))));
  });
