import { type Damage, damage, FIRST_BATCH, LAST, NEWEST, OLDEST, P1, P2, POINT } from './damage.ts';

/** Damage to revisions and history. */
export const PAST: Readonly<Record<string, Damage>> = {
  'a revision that is gone': damage(
    ['revisions-whole', 'revisions-known', 'scopes-noted', 'batches-linked'],
    `delete from revision where number =
      (select revision from load_batch where id = ${FIRST_BATCH})`,
  ),
  'a time that stands still': damage(
    'revisions-whole',
    `update revision set committed_at = committed_at - interval '1 year' where number = ${LAST}`,
  ),
  'a point of a revision that never was': damage(
    [
      'revisions-known',
      'scopes-noted',
      'changes-counted',
      'batches-counted',
      'batches-withdrawn',
      'corrections-counted',
    ],
    `update series set revision = 999 ${POINT}`,
  ),
  'a version that ends with a revision that never was': damage(
    ['revisions-known', 'scopes-noted', 'history-whole', 'changes-counted', 'corrections-counted'],
    `update series_history set revision_to = 999 ${NEWEST}`,
  ),
  'a market whose change was not noted': damage(
    'scopes-noted',
    `delete from revision_scope where scope = 'aluminium'
      and revision = (select revision from load_batch where id = ${FIRST_BATCH})`,
  ),
  'a version that is lost': damage(
    ['batches-counted', 'batches-withdrawn', 'corrections-counted'],
    `delete from series_history ${NEWEST}`,
  ),
  'versions that overlap': damage(
    ['history-whole', 'corrections-counted'],
    `update series_history set revision_to = revision_to + 1 ${OLDEST}`,
  ),
  'a hole in the past of a unit': damage(
    ['history-whole', 'scopes-noted'],
    `insert into unit_of_measure_history
      select u.*, revision + 1 from unit_of_measure u where slug = 'tonne'`,
    `update unit_of_measure set revision = ${LAST} where slug = 'tonne'`,
  ),
  'a current row older than its past': damage(
    ['history-whole', 'batches-prices'],
    `update price set revision = (select min(revision) from price_history where code = 'XX-2')
      where code = 'XX-2'`,
  ),
};

/** Damage to the feed and the ledger. */
export const LEDGERS: Readonly<Record<string, Damage>> = {
  'a change that the feed does not count': damage(
    ['changes-counted', 'changes-numbered'],
    `update change_segment set points = points + 1
      where revision = (select revision from load_batch where id = ${FIRST_BATCH})
        and price_id = ${P1}`,
  ),
  'a segment that is gone': damage(
    ['changes-counted', 'changes-numbered'],
    `delete from change_segment
      where revision = (select revision from load_batch where id = ${FIRST_BATCH})
        and price_id = ${P1}`,
  ),
  'a change outside the noted dates': damage(
    'changes-counted',
    `update change_segment set first_date = '2020-02-01', last_date = '2020-02-01'
      where price_id = ${P2} and points > 0`,
  ),
  'numbers with a gap': damage(
    'changes-numbered',
    `update change_segment set first_seq = first_seq + 100 where revision = ${LAST}`,
  ),
  'a batch that does not add up': damage(
    'in-force',
    'alter table load_batch drop constraint load_batch_adds_up',
    `update load_batch set rows = rows + 1 where id = ${FIRST_BATCH}`,
  ),
  'a batch that says it did more': damage(
    'batches-counted',
    `update load_batch set rows = rows + 1, inserted = inserted + 1 where id = ${FIRST_BATCH}`,
  ),
  'points that another batch claims': damage(
    'batches-counted',
    `update series set batch_id = ${FIRST_BATCH} where price_id = ${P2}`,
  ),
  'a batch that says it added another price': damage(
    'batches-prices',
    `update load_batch set prices_added = prices_added + 1 where prices_added = 3`,
  ),
  'a batch that says it withdrew more': damage(
    'batches-withdrawn',
    `update load_batch set rows = rows + 1, withdrawn = withdrawn + 1 where format = 'withdraw'`,
  ),
  'a point that was withdrawn at another time': damage(
    ['batches-withdrawn', 'changes-counted', 'history-whole'],
    `update series_history set revision_to = ${LAST} where date = '2020-02-29'`,
  ),
  'a batch without its revision': damage(
    ['batches-linked', 'batches-counted'],
    `update load_batch set revision = null where id = ${FIRST_BATCH}`,
  ),
  'a batch that was not undone': damage(
    'batches-linked',
    `update load_batch set undone_by = id where id = ${FIRST_BATCH}`,
  ),
  'ranges that overlap': damage(
    'coverage-agrees',
    `insert into load_coverage select * from load_coverage
      where batch_id = ${FIRST_BATCH} and price_id = ${P1}`,
  ),
  'a value that its edition did not cover': damage(
    'coverage-agrees',
    `delete from load_coverage where batch_id = ${FIRST_BATCH} and price_id = ${P1}`,
  ),
};
