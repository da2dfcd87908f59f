import { createHash, randomBytes } from 'node:crypto';
import { buildApp } from '../../app.ts';
import { createDevelopmentToken } from '../../auth/development-token.ts';
import { MARKETS } from '../../catalog/markets.ts';
import { ALL_MARKETS } from '../../catalog/scopes.ts';
import { type Config, configOf } from '../../config.ts';
import type { Client } from '../../db/client.ts';

/** A request whose answer is the same for ever. */
export interface Question {
  readonly what: string;
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly payload?: object;
}

/** What came back, to be compared. */
export interface Answer {
  readonly status: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Prices of each market whose answers are compared; enough to see every kind of value. */
const CODES_MAX = 20;
const FEED_MAX = 500;

/** The newest revision, one half-way, the codes to ask for, and the end of the feed. */
const FACTS = `
  select epoch, greatest(1, newest / 2)::text as half, newest::text,
    greatest(0, (select coalesce(max(first_seq + price_changes + points) - 1, 0)
      from change_segment) - ${FEED_MAX})::text as after,
    (select coalesce(json_object_agg(slug, codes), '{}') from (
      select m.slug, (array_agg(p.code order by p.code collate "C"))[:${CODES_MAX}] as codes
      from price p join market m on m.id = p.market_id group by 1) as each) as codes
  from service, (select coalesce(max(number), 0) as newest from revision) as r`;

interface Facts {
  readonly epoch: string;
  readonly half: string;
  readonly newest: string;
  readonly after: string;
  readonly codes: Readonly<Record<string, readonly string[]>>;
}

/** Prices of every market now and at an older revision, reference data, and the end of the feed. */
export async function questionsOn({ pool }: Client): Promise<Question[]> {
  const { rows } = await pool.query<Facts>(FACTS);
  const [facts] = rows;
  if (!facts) throw new Error('the table service has no row');
  const { epoch, half, newest, after, codes } = facts;
  if (newest === '0') return [];
  const prices = MARKETS.filter(({ slug }) => codes[slug]).flatMap(({ slug }) =>
    [...new Set([newest, half])].map((number): Question => {
      const revision = `${epoch}.${number}`;
      const options = { includeSeries: true, includeSummary: true, revision };
      const payload = { filters: { codes: codes[slug] }, options };
      return { what: `${slug} at ${revision}`, method: 'POST', url: `/v3/prices/${slug}`, payload };
    }),
  );
  const get = (what: string, url: string): Question => ({ what, method: 'GET', url });
  return [
    ...prices,
    get('currencies', '/v3/reference/currencies'),
    get('units', '/v3/reference/units'),
    get('feed', `/v3/changes?after=${epoch}.${after}&limit=${FEED_MAX}`),
  ];
}

/** The service over a database, for questions of this process. */
export async function askerOn(client: Client, given: Config) {
  const secret = randomBytes(32).toString('base64url');
  const config: Config = {
    ...configOf({}),
    FX_SOURCE: given.FX_SOURCE,
    CHANGES_LIMIT_MAX: FEED_MAX,
    CHANGES_LIMIT: FEED_MAX,
    REQUEST_DEADLINE_MS: 600_000,
    RATE_PER_MINUTE: 0,
    // Every answer is read from the tables.
    PRICE_BOOK_BYTES: 0,
    JWT_SECRET: secret,
  };
  const app = await buildApp({ config, client });
  const token = await createDevelopmentToken({
    secret,
    issuer: config.JWT_ISSUER,
    audience: config.JWT_AUDIENCE,
    subject: 'drill',
    scopes: [ALL_MARKETS],
    lifetimeSeconds: config.JWT_LIFETIME_MAX_SECONDS,
  });
  const headers = { authorization: `Bearer ${token}` };
  const ask = async ({ method, url, payload }: Question): Promise<Answer> => {
    const { statusCode, rawPayload } = await app.inject({
      method,
      url,
      headers,
      ...(payload ? { payload } : {}),
    });
    return {
      status: statusCode,
      bytes: rawPayload.length,
      sha256: createHash('sha256').update(rawPayload).digest('hex'),
    };
  };
  return { ask, close: () => app.close() };
}
