import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { pythonTypes } from '../../scripts/python-types.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { OPTION_NAMES } from '../../src/contract/schemas/options.ts';
import { testDatabase } from '../support/database/database.ts';
import { blocksOf, ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { PANDAS_PYTHON, python } from '../support/process/python.ts';
import { makeFolder } from '../support/run/folders.ts';

const database = await testDatabase(t, { seeded: true });
const service = await serviceOn(t, database);
const env = {
  COMMODITY_PRICES_URL: await addressOf(service.app),
  COMMODITY_PRICES_KEY: service.key,
};

/** The JSON output of a program. */
async function printed(program: string, options: { file?: string } = {}) {
  const imports = 'import json, commodity_prices as cp';
  const { code, stdout, stderr } = await python(`${imports}\n${program}`, env, options);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

t.test('prices are the records of the service, with their revision', async (t) => {
  const filters = { regions: ['Europe'], dateFrom: '2026-06-01' };
  const { json } = await service.post('nickel', { filters, options: { includeSeries: true } });
  const got = await printed(`
got = cp.prices("nickel", regions=["Europe"], date_from="2026-06-01")
print(json.dumps({"data": got, "revision": got.revision, "rows": got.rows()}))`);
  t.same(got.data, json.data);
  t.equal(got.revision, json.$metadata.revision);
  const points = json.data.flatMap((each: { series: unknown[] }) => each.series);
  t.equal(got.rows.length, points.length);
  const [first] = json.data;
  t.same(got.rows[0], {
    code: first.code,
    name: first.name,
    date: first.series[0].date,
    low: first.series[0].low,
    mid: first.series[0].mid,
    high: first.series[0].high,
    currency: first.currency.iso,
    unit: first.unitOfMeasure.symbol,
    corrections: 0,
  });
});

t.test(
  'dates, sets and options go where they belong, and numbers are exact on request',
  async (t) => {
    const got = await printed(`
import datetime
client = cp.Client(decimal=True)
got = client.prices("nickel", codes=(each for each in ["CP-NI-0001"]),
                    dateFrom=datetime.date(2026, 6, 1), dateTo=datetime.datetime(2026, 6, 30),
                    currency="EUR", unitOfMeasure="lb",
                    aggregate={"period": "month", "method": "average"})
whole = client.prices("nickel", codes=["CP-NI-0001"])[0]["series"][-1]["mid"]
print(json.dumps([got[0]["conversion"]["status"], [str(each["mid"]) for each in got.rows()],
                  [type(each).__name__ for each in (got.rows()[0]["mid"], whole)],
                  whole == whole // 1]))`);
    const { text } = await service.post('nickel', {
      filters: { codes: ['CP-NI-0001'], dateFrom: '2026-06-01', dateTo: '2026-06-30' },
      options: {
        includeSeries: true,
        currency: 'EUR',
        unitOfMeasure: 'lb',
        aggregate: { period: 'month', method: 'average' },
      },
    });
    const mid = /"mid":([\d.]+)/.exec(text)?.[1];
    t.same(
      got,
      ['converted', [mid], ['Decimal', 'Decimal'], true],
      'a whole number is Decimal too',
    );
  },
);

t.test('rows have floats, and a record an int for a whole number', async (t) => {
  const got = await printed(`
got = cp.prices("nickel", codes=["CP-NI-0001"])
last = [got[0]["series"][-1], got.rows()[-1]]
print(json.dumps([type(each["mid"]).__name__ for each in last]))`);
  t.same(got, ['int', 'float']);
});

t.test('pages joined are the whole, changes and search answer as the service does', async (t) => {
  const got = await printed(`
whole = cp.prices("lithium")
pages = list(cp.pages("lithium", limit=5))
feed = cp.changes(market="cobalt", limit=3)
more = cp.changes(market=["cobalt", "nickel"], after=feed.next_seq, limit=2)
end = feed
while end: end = cp.changes(market="cobalt", after=end.next_seq)
now = cp.changes(after="latest")
after = cp.changes(after=f"revision:{whole.revision}", market="lithium")
print(json.dumps({"same": [each for page in pages for each in page] == whole,
  "pages": len(pages), "revisions": len({page.revision for page in pages}),
  "changes": len(feed) + len(more), "waited": len(cp.changes(after=end.next_seq, wait=1)),
  "begun": [len(now), len(after), now.next_seq == after.next_seq],
  "found": cp.search("CP-NI-0003")[0]["code"], "markets": len(cp.markets())}))`);
  t.match(got, {
    same: true,
    revisions: 1,
    changes: 5,
    waited: 0,
    begun: [0, 0, true],
    found: 'CP-NI-0003',
    markets: MARKETS.length,
  });
  t.ok(got.pages > 2);
});

const { paths, components } = parse(
  readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8'),
);

t.test('a calculation has the results of the service, and its warnings are warnings', async (t) => {
  const inputs = { a: { code: 'CP-NI-0001', period: 'M-1' }, b: { value: '18', unit: '%' } };
  const request = { formula: 'a * b', inputs, anchor: '2026-06-24' };
  const { json } = await service.request({
    method: 'POST',
    url: '/v3/calculations',
    payload: request,
  });
  const got = await printed(`
import datetime, decimal, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cp.calculate(average="CP-CO-0005", period="2026-05", currency="USD")
inputs = {"a": {"code": "CP-NI-0001", "period": "M-1"},
          "b": {"value": decimal.Decimal("18"), "unit": "%"}}
got = cp.calculate("a * b", inputs=inputs, anchor=datetime.date(2026, 6, 24))
past = cp.calculate("a * b", inputs=inputs, anchor="2026-06-24", revision=got.revision,
                    receipt=False)
exact = cp.Client(decimal=True).calculate("a * b", inputs=inputs, anchor="2026-06-24")
print(json.dumps({"data": got, "revision": got.revision, "past": list(past[0]),
                  "exact": repr(exact[0]["value"]), "rows": got.rows() == got,
                  "warned": [str(each.message).split()[1] for each in caught]}))`);
  t.same(got.data, json.data);
  t.equal(got.revision, json.$metadata.revision);
  t.notOk(got.past.includes('inputs'));
  t.equal(got.exact, "Decimal('3172.5')");
  t.ok(got.rows);
  t.same(got.warned, ['sample_rates', 'vat_included']);
});

t.test('every list of the service has a call, with the records of its answer', async (t) => {
  const calls: Readonly<Record<string, string>> = {
    '/v3/me': 'cp.me()',
    '/v3/prices': 'cp.markets()',
    '/v3/reference/currencies': 'cp.currencies()',
    '/v3/reference/units': 'cp.units()',
    '/v3/reference/rates?base=EUR&quote=USD&from=2026-06-01&to=2026-06-30':
      'cp.rates("EUR", "USD", date_from="2026-06-01", date_to=datetime.date(2026, 6, 30))',
    '/v3/search?q=nickel&limit=2': 'cp.search("nickel", limit=2)',
    '/v3/prices/nickel/filters': 'cp.filters("nickel")',
    '/v3/prices/nickel?includeSeries=true': 'cp.prices("nickel")',
    '/v3/changes?limit=2': 'cp.changes(limit=2)',
    '/v3/calendar?market=nickel&from=2026-06-01&to=2026-06-30':
      'cp.calendar(market="nickel", date_from="2026-06-01", date_to="2026-06-30")',
  };
  const open = Object.keys(paths).filter(
    (path) =>
      (paths[path].get?.security ?? []).length > 0 &&
      !MARKETS.some(({ slug }) => slug !== 'nickel' && path.includes(`/${slug}`)),
  );
  t.same(
    Object.keys(calls)
      .map((each) => each.split('?')[0])
      .sort(),
    open.sort(),
  );
  const made = await printed(`
import datetime
print(json.dumps([${Object.values(calls).join(', ')}]))`);
  for (const [place, url] of Object.keys(calls).entries()) {
    const { json } = await service.request({ method: 'GET', url });
    t.same(made[place], json.data ?? json, url);
    t.ok(Object.keys(made[place]).length > 0, url);
  }
});

t.test('a file has the bytes of the service in each of its formats', async (t) => {
  const { content } = paths['/v3/prices/nickel'].post.responses[200];
  const media = Object.keys(content).filter((each) => each !== 'application/json');
  t.same(await printed('print(json.dumps(list(cp.MEDIA.values())))'), media);
  const made = await printed(`
import base64, hashlib
def sha(data): return hashlib.sha256(data).hexdigest()
whole = [cp.file("nickel", each, dateFrom="2026-06-01") for each in cp.MEDIA]
print(json.dumps([[sha(each.read()), each.revision, each.next_cursor] for each in whole] +
  [sha(b"".join(cp.file("nickel", "csv", dateFrom="2026-06-01")))] +
  [cp.file("nickel", "csv", columns="code", limit=1).next_cursor is None]))`);
  const body = JSON.stringify({
    filters: { dateFrom: '2026-06-01' },
    options: { includeSeries: true },
  });
  for (const [place, accept] of media.entries()) {
    const headers = { accept, 'content-type': 'application/json', 'x-api-key': service.key };
    const address = `${env.COMMODITY_PRICES_URL}/v3/prices/nickel`;
    const answer = await fetch(address, { method: 'POST', headers, body });
    const sha = createHash('sha256')
      .update(Buffer.from(await answer.arrayBuffer()))
      .digest('hex');
    t.same(made[place], [sha, answer.headers.get('x-data-revision'), null], accept);
  }
  t.same(made.slice(media.length), [made[0][0], false], 'also in pieces, and with a next page');
});

t.test('the types of records are those of the document, and answers have them', async (t) => {
  const file = new URL('../../clients/python/commodity_prices_types.py', import.meta.url);
  t.ok(pythonTypes(components.schemas) === readFileSync(file, 'utf8'), 'npm run generate');
  const wrong = await printed(`
import typing, commodity_prices_types as types
wrong = []
def check(value, hint, place):
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        count = len(wrong)
        for each in args:
            del wrong[count:]
            check(value, each, place)
            if len(wrong) == count: return
    elif origin is typing.Literal:
        if value not in args: wrong.append([place, repr(value)])
    elif origin is list:
        for each in value: check(each, args[0], place)
    elif typing.is_typeddict(hint):
        if not isinstance(value, dict): return wrong.append([place, repr(value)[:40]])
        hints = typing.get_type_hints(hint)
        missing, unknown = hint.__required_keys__ - set(value), set(value) - set(hints)
        if missing or unknown: wrong.append([place, sorted(missing), sorted(unknown)])
        for name in set(value) & set(hints): check(value[name], hints[name], f"{place}.{name}")
    elif not isinstance(value, (int, float) if hint is float else hint):
        wrong.append([place, repr(value)[:40]])
options = {"currency": "EUR", "includeSummary": True, "lastObservations": 2,
           "aggregate": {"period": "month", "method": "average"}}
for each in cp.markets():
    words = "".join(word.capitalize() for word in each["slug"].split("-"))
    for more in ({"lastObservations": 2}, options):
        found = cp.prices(each["slug"], **more)
        for name in (f"{words}PriceRecord", "PriceRecord"):
            check(found, list[getattr(types, name)], name)
check(cp.search("nickel"), list[types.SearchResult], "search")
check(cp.markets(), list[types.MarketSummary], "markets")
check(cp.currencies(), list[types.CurrencyEntry], "currencies")
check(cp.units(), list[types.UnitEntry], "units")
check(cp.rates("EUR", "USD"), list[types.RateEntry], "rates")
check(cp.changes(limit=50), list[types.Change], "changes")
check(cp.me(), types.Me, "me")
check(cp.calculate(average="CP-CO-0005", period="2026-05", currency="USD"),
      list[types.CalculationResult], "calculations")
for name, values in cp.filters("nickel").items(): check(values, list[types.FilterValue], name)
count = len(wrong)
check([{"slug": 1}], list[types.MarketSummary], "a wrong one")
print(json.dumps([wrong[:count][:20], len(wrong) > count]))`);
  t.same(wrong, [[], true]);
});

t.test('a warning of an answer is a Python warning that names the line of the user', async (t) => {
  const { stderr } = await python(
    `import commodity_prices as cp
cp.prices("nickel", regions=["Europ"])
cp.Client().prices("nickel", regions=["Europ"])
list(cp.pages("nickel", regions=["Europ"]))`,
    env,
  );
  const lines = stderr.matchAll(
    /<string>:(\d+): PricesWarning: nickel: unmatched_value \/filters\/regions\/0: .*Europe/g,
  );
  t.same(
    [...lines].map(([, line]) => line),
    ['2', '3', '4'],
  );
});

t.test('one text is a list of one value, and a date stays a date', async (t) => {
  const call = (regions: string) =>
    `cp.prices("nickel", regions=${regions}, dateFrom="2026-06-01")`;
  t.ok(await printed(`print(json.dumps(${call('"Europe"')} == ${call('["Europe"]')}))`));
});

t.test('the client knows every option of the service', async (t) => {
  const options = await printed('print(json.dumps(sorted(cp.OPTIONS)))');
  t.same(options, [...OPTION_NAMES].sort());
});

t.test('a refusal carries its status, code, places and request id', async (t) => {
  const got = await printed(`
def refused(call):
    try: call()
    except cp.PricesError as error:
        return [error.status, error.code, error.errors, error.request_id, str(error)]
print(json.dumps([refused(lambda: cp.prices("nickel", regoins=["Europe"])),
  refused(lambda: cp.prices("nickle")), refused(lambda: cp.Client(key="nonsense").markets())]))`);
  const [misspelt, unknown, unauthorized] = got;
  t.same(misspelt.slice(0, 2), [400, 'validation_failed']);
  t.match(misspelt[2], [{ pointer: '/filters/regoins', code: 'unknown_field' }]);
  t.match(misspelt[3], /^[0-9a-f-]{36}$/);
  t.match(misspelt[4], /did you mean regions/);
  t.same(unknown.slice(0, 2), [404, 'not_found']);
  t.match(unknown[4], /version 3/);
  t.same(unauthorized.slice(0, 2), [401, 'invalid_api_key']);
});

t.test('without a key, and with one in the address, nothing is sent', async (t) => {
  const none = await python('import commodity_prices as cp\ncp.markets()', {
    COMMODITY_PRICES_URL: 'http://127.0.0.1:9',
  });
  t.match(none.stderr, /There is no API key; set COMMODITY_PRICES_KEY/);
  for (const url of [
    'https://cps_live_abc@prices.example.com',
    'https://user:word@prices.example.com',
    'https://:word@prices.example.com',
    'https://prices.example.com/cps%5Flive%5Fabc',
    'https://prices.example.com?key=x',
  ]) {
    const { stderr } = await python(
      `import commodity_prices as cp\ncp.Client(${JSON.stringify(url)})`,
      env,
    );
    t.match(stderr, /The address holds a credential or a query/, url);
  }
  const twice = await python(
    'import commodity_prices as cp\ncp.prices("nickel", date_from="2020", dateFrom="2026")',
    env,
  );
  t.match(twice.stderr, /date_from and dateFrom are one argument/);
  const odd = await python('import commodity_prices as cp\ncp.Client(key="a\\r\\nb")', env);
  t.match(odd.stderr, /holds a space, a line end/);
  const empty = await python('import commodity_prices as cp\ncp.Client(key="")', env);
  t.match(empty.stderr, /There is no API key/, 'an empty key does not stand for the environment');
});

t.test(
  'a DataFrame has a row for each point, typed columns, and all of them without rows',
  async (t) => {
    if (PANDAS_PYTHON === null) {
      t.comment('no python3 here has pandas: DataFrames are not tested');
      return;
    }
    const got = await printed(
      `
frame = cp.prices("nickel").df()
empty = cp.prices("nickel", codes=["CP-NI-0001"], dateFrom="2199-01-01").df()
exact = cp.Client(decimal=True).prices("nickel", codes=["CP-NI-0001"]).df()
print(json.dumps({"rows": len(frame), "points": len(cp.prices("nickel").rows()),
  "types": {name: str(frame[name].dtype) for name in ("date", "low", "mid", "corrections")},
  "same": [str(each) for each in empty.dtypes] == [str(each) for each in frame.dtypes],
  "empty": [list(empty.columns), len(empty), str(empty["mid"].dtype), str(empty["date"].dtype)],
  "exact": type(exact["mid"][0]).__name__,
  "none": list(cp.search("zzzzzzzz").df().columns),
  "found": list(cp.search("CP-NI-0003").df()["code"]),
  "arrays": len(cp.prices("nickel", codes=frame["code"].unique(),
                          dateFrom=frame["date"].max()))}))`,
      { file: PANDAS_PYTHON },
    );
    t.equal(got.found[0], 'CP-NI-0003');
    const openapi = new URL('../../openapi.yaml', import.meta.url);
    const { SearchResult } = parse(readFileSync(openapi, 'utf8')).components.schemas;
    t.same(got.none, SearchResult.required, 'an empty search has the columns of every other');
    t.ok(got.arrays > 1, 'columns of a DataFrame are filters');
    t.equal(got.rows, got.points);
    t.match(got.types, {
      date: /^datetime64/,
      low: 'float64',
      mid: 'float64',
      corrections: 'int64',
    });
    t.ok(got.same, 'without rows too');
    t.match(got.empty, [
      'code,name,date,low,mid,high,currency,unit,corrections'.split(','),
      0,
      'float64',
      /^datetime64/,
    ]);
    t.equal(got.exact, 'Decimal');
  },
);

t.test('mypy finds no error in the client, its types and the programs of the recipe', async (t) => {
  const { stdout } = await python('import importlib.util; print(importlib.util.find_spec("mypy"))');
  if (stdout.startsWith('None')) {
    t.comment('not run, as this machine lacks mypy');
    return;
  }
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const programs = blocksOf('docs/recipes/python.md').filter(({ text }) => /\bcast\(/.test(text));
  t.equal(programs.length, 2);
  const files = await Promise.all(
    programs.map(async ({ text }, at) => {
      const path = join(folder.path, `recipe_${at}.py`);
      await writeFile(path, text);
      return path;
    }),
  );
  const paths = [...files, join(ROOT, 'clients/python/commodity_prices.py')];
  const args = ['--cache-dir', join(folder.path, 'cache'), ...paths];
  const program = `
import runpy, sys
sys.argv[1:] = ${JSON.stringify(args)}
runpy.run_module("mypy", run_name="__main__")`;
  const MYPYPATH = join(ROOT, 'clients/python');
  const checked = await python(program, { MYPYPATH }, { timeout: 300_000 });
  t.equal(checked.code, 0, checked.stdout);
});

t.test(
  'the client is one module of at most 608 lines that needs the standard library only',
  async (t) => {
    const text = readFileSync(
      new URL('../../clients/python/commodity_prices.py', import.meta.url),
      'utf8',
    );
    t.ok(text.split('\n').length <= 609);
    const imported = [...text.matchAll(/^\s*(?:import|from) ([\w.]+)/gm)].map(([, name]) => name);
    const got = await printed(`
import ast, sys
ast.parse(${JSON.stringify(text)}, feature_version=(3, 9))
print(json.dumps([name for name in ${JSON.stringify(imported)}
                  if name.split(".")[0] not in sys.stdlib_module_names]))`);
    // Its own documentation shows how it is imported. Only type checkers import the types.
    const types = 'commodity_prices_types';
    const others = [types, types, types, 'pandas'];
    t.same(got, ['commodity_prices', ...others], 'and pandas where a DataFrame is asked for');
    const alone = 'import sys; print(json.dumps("commodity_prices_types" in sys.modules))';
    t.equal(await printed(alone), false);
  },
);
