/** A marker in every payload that must never occur in the text of a statement. */
export const CANARY = 'zq7canary';

const OPENINGS = [
  ...["'", '"', "')", "'))", '")', "\\'", "\\\\'", "%'", '', '1', '1)', "'||'", '$$', '$1'],
  ...["'::text", '\u02bc', '\uff07', '\u2019', '%27', '%2527', "''", '`'],
];

const MIDDLES = [
  ' or 1=1',
  " or 'a'='a",
  ' and 1=0',
  ' union select null, version()',
  ' union all select null,null,null,null',
  '; select pg_sleep(30)',
  ' and (select pg_sleep(30)) is null',
  ' || (select pg_sleep(30)) || ',
  '; drop table price cascade',
  '; update series set mid = 0',
  "; copy price to program 'id'",
  ' and 1 = cast(version() as int)',
  '; select pg_terminate_backend(pid) from pg_stat_activity',
  '; set default_transaction_read_only = off',
  '; do $$ begin perform pg_sleep(30); end $$',
  ' order by 99',
  ' having 1=1',
  '; lock table price',
  '||chr(65)||',
  ' is null or price_id > 0',
];

const ENDINGS = [' --', ' /*', ';'];

/** Texts with a meaning in SQL builders, JSON paths, arrays or patterns. */
const SPECIAL = [
  ...['$1', '$2', '$\u007b1}', ':1', ':name', '?', '?|', '??', '%s', '%I', '%', '_', '\\', '\\\\'],
  ...['{', '}', '{}', '{1,2}', '{"a"}', '[]', '$[0]', '$.a', '$."a"', '@.a', "->>'a'", "#>'{a}'"],
  ...['a"."b', 'a"b', '"', "'", "''", "E'\\''", "U&'\\0027'", "x'27'", '\\x27', '0x27', '\\047'],
  ...['null', 'NULL', 'true', 'NaN', 'infinity', 'default', 'current_user', 'now()', 'epoch'],
  ...['{"$gt":""}', '{"$ne":null}', '[$ne]=1', '__proto__', 'constructor', 'price.code', '*'],
  ...[
    "$$'$$",
    '$tag$',
    '--',
    '/*',
    '*/',
    ';',
    ',',
    '(',
    ')',
    'a,b',
    '<>',
    '!=',
    '=',
    '\u00ad\u0027',
  ],
];

/** Texts that would be SQL if a value ever became part of a statement. */
export const INJECTIONS: readonly string[] = [
  ...OPENINGS.flatMap((opening) =>
    MIDDLES.flatMap((middle, at) => {
      const ending = ENDINGS[at % ENDINGS.length] ?? '';
      return [`${CANARY}${opening}${middle}${ending}`, `${opening}${middle} as ${CANARY}${ending}`];
    }),
  ),
  ...SPECIAL.flatMap((each) => [`${CANARY}${each}`, `${each}${CANARY}`]),
];
