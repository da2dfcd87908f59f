/** Damage to the stored data, and the rules that detect it. */
export interface Damage {
  readonly rules: readonly string[];
  readonly sql: readonly string[];
}

/** Statements that do damage, and which rules find it. */
export const damage = (rules: string | readonly string[], ...sql: string[]): Damage => ({
  rules: [rules].flat(),
  sql,
});

export const P1 = `(select id from price where code = 'XX-1')`;
export const P2 = `(select id from price where code = 'XX-2')`;
export const POINT = `where price_id = ${P1} and date = '2020-01-31'`;
export const OLDEST = `${POINT} and revision = (select min(revision) from series_history ${POINT})`;
export const NEWEST = `${POINT} and revision = (select max(revision) from series_history ${POINT})`;
export const LAST = '(select max(number) from revision)';
export const FIRST_BATCH = `(select min(id) from load_batch where inserted = 3)`;
export const anyOf = (kind: string): string =>
  `(select min(id) from dimension_value where kind = '${kind}')`;
