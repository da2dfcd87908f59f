import { anyOf, type Damage, damage, LAST, POINT } from './damage.ts';
import { LEDGERS, PAST } from './past-damages.ts';

const SCHEMA: Readonly<Record<string, Damage>> = {
  'a trigger that is switched off': damage(
    'in-force',
    'alter table series disable trigger series_stamp',
  ),
  'a trigger that is gone': damage('in-force', 'drop trigger price_dimension_kinds on price'),
  'a foreign key that is switched off': damage(
    'in-force',
    'alter table product disable trigger all',
  ),
  'a constraint that is gone': damage(
    'in-force',
    'alter table series drop constraint series_low_mid_high',
  ),
  'a constraint that was not validated': damage(
    'in-force',
    'alter table series drop constraint series_low_mid_high',
    `alter table series add constraint series_low_mid_high
      check (low <= mid and mid <= high and low <= high) not valid`,
  ),
  'an index that is gone': damage('in-force', 'drop index series_history_superseded'),
  'a view that is gone': damage('in-force', 'drop view published.rate'),
  'an index that was left invalid': damage(
    'in-force',
    `update pg_index set indisvalid = false where indexrelid = 'load_batch_revision'::regclass`,
  ),
  'a constraint of the past that is gone': damage(
    'in-force',
    'alter table series_history drop constraint series_low_mid_high',
  ),
  'a view that everybody may read': damage(
    'reader-confined',
    'grant select on published.rate to public',
  ),
  'a market that is not of the catalog': damage(
    'catalog-written',
    `insert into market (slug, name) values ('tin', 'Tin')`,
  ),
  'a scope of another market': damage(
    'catalog-written',
    `update access_scope set market_id = null where scope = 'prices:nickel'`,
  ),
  'an account without the others': damage(
    'rights-granted',
    'create role damaged_service',
    'grant select on market to damaged_service',
  ),
  'ids that come again': damage('ids-unused', `alter table price alter id restart with 1`),
};

const VALUES: Readonly<Record<string, Damage>> = {
  'a correction that is not counted': damage(
    'corrections-counted',
    `update series set corrections = 1 ${POINT}`,
  ),
  'a correction that never was': damage(
    'corrections-counted',
    `update series set corrections = 1 where price_id = (select id from price where code = 'XX-9')`,
  ),
};

/** Replaces the references of the payable. */
const referring = (...references: readonly object[]): string => {
  const whole = { code: 'XX-1', side: 'mid', statistic: 'session', element: 'Ni' };
  const entries = references.map((each) => ({ ...whole, validFrom: '2020-01-01', ...each }));
  return `update price set payable_reference = '${JSON.stringify(entries)}' where code = 'XX-9'`;
};

const PRICES: Readonly<Record<string, Damage>> = {
  'points without a price': damage(
    ['no-orphans', 'changes-counted', 'batches-prices'],
    `delete from price_history where code = 'XX-2'`,
    `delete from price where code = 'XX-2'`,
  ),
  'values of no batch': damage(
    ['no-orphans', 'batches-counted'],
    `update series set batch_id = 999 ${POINT}`,
  ),
  'a payable with a currency': damage(
    'in-force',
    'alter table price drop constraint price_payable_has_no_currency',
    `update price set currency_id = (select min(id) from currency) where code = 'XX-9'`,
  ),
  'a unit with the dimension of another': damage(
    'payables-in-percent',
    `update price set unit_dimension = 'volume' where code = 'XX-1'`,
  ),
  'a price whose past had another currency': damage(
    'identity-fixed',
    `update price_history set currency_id = (select id from currency where iso = 'EUR')
      where code = 'XX-2' and revision = (select min(revision) from price_history
        where code = 'XX-2')`,
  ),
  'a unit whose factor was changed': damage(
    ['identity-fixed', 'scopes-noted'],
    `insert into unit_of_measure_history select u.*, ${LAST} from unit_of_measure u
      where slug = 'tonne'`,
    `update unit_of_measure set factor = 1001, revision = ${LAST} where slug = 'tonne'`,
  ),
  'a search alias whose revision changed prices only': damage(
    'scopes-noted',
    `insert into search_alias (words, alias, revision) values ('chile', 'Chili', ${LAST})`,
  ),
  'a region that is an incoterm': damage(
    'dimension-kinds',
    `update price set region_id = ${anyOf('incoterm')} where code = 'XX-1'`,
  ),
  'a dimension that the market lacks': damage(
    'dimensions-of-market',
    `update price set purity_id = ${anyOf('purity')} where code = 'XX-1'`,
  ),
  'a product of another market': damage(
    'product-of-market',
    `update price set product_id = (select min(p.id) from product p
      join market m on m.id = p.market_id where m.slug = 'nickel') where code = 'XX-1'`,
  ),
  'a code of another market': damage(
    ['code-of-market'],
    `update price set code = 'CP-NI-0001', code_key = 'cp-ni-0001' where code = 'XX-1'`,
  ),
  'a specification of another form': damage(
    'specifications-formed',
    `update price set specification = '[{"name": "a", "value": 1, "order": 1}]'
      where code = 'XX-1'`,
  ),
  'a reference to a payable': damage(
    'references-formed',
    referring({ code: 'XX-9', validFrom: '2020-01-01' }),
  ),
  'references that are not in the order of their days': damage(
    'references-formed',
    referring({ validFrom: '2021-01-01' }, { validFrom: '2020-01-01' }),
  ),
  'a reference without a side': damage('references-formed', referring({ side: undefined })),
  'a key that is not what the name makes': damage(
    'match-keys',
    `update product set match_key = 'Bauxite' where name = 'Bauxite'`,
  ),
};

const CALENDARS: Readonly<Record<string, Damage>> = {
  'a time zone that there is not': damage(
    'calendars-formed',
    `update calendar set zone = 'Europe/Lundon'`,
  ),
  'a holiday on no day': damage(
    'calendars-formed',
    `update holiday_list set days = '[{"date": "2026-02-30", "name": "A day"}]'`,
  ),
  'a past calendar without its holiday list': damage(
    'no-orphans',
    `update calendar_history set holiday_list_id = 999`,
  ),
  'a calendar whose change no scope notes': damage(
    'scopes-noted',
    `delete from revision_scope where scope = 'reference'
      and revision = (select revision from price_calendar limit 1)`,
  ),
  'a calendar that no batch added': damage(
    ['batches-counted', 'no-orphans'],
    'update price_calendar set batch_id = 999',
  ),
  'a calendar of another name': damage(
    'identity-fixed',
    `update calendar_history set slug = 'daily'`,
  ),
};

/** All of it, by what is done. */
export const DAMAGES: Readonly<Record<string, Damage>> = {
  ...SCHEMA,
  ...VALUES,
  ...PRICES,
  ...CALENDARS,
  ...PAST,
  ...LEDGERS,
};
