import t from 'tap';
import { randomOf } from '../conversion/support.ts';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { differenceOf, fractionOf, isEqual, type Receipt } from './recompute.ts';
import { calculate, violationsOf } from './support.ts';

const database = await seededDatabase(t);
const service = await serviceOn(t, database);

interface Known {
  readonly code: string;
  readonly isPayable: boolean;
  readonly isMass: boolean;
  readonly hasVat: boolean;
  readonly days: readonly string[];
}

/** The prices of the samples and the days of their points, from SQL. */
async function knownPrices(): Promise<readonly Known[]> {
  const { rows } = await database.pool.query(
    `select p.code, p.price_type = 'payable' as "isPayable", p.unit_dimension = 'mass' as "isMass",
        p.vat_country is not null as "hasVat", array_agg(s.date::text order by s.date) as days
      from price as p join series as s on s.price_id = p.id group by p.id order by p.code`,
  );
  return rows;
}

const RANDOM = randomOf(49);
const index = (length: number): number => Math.floor(RANDOM() * length);
const pick = <T>(items: readonly T[]): T => items[index(items.length)] as T;
const maybe = <T>(share: number, value: T): T | undefined => (RANDOM() < share ? value : undefined);

const MODES = ['half-even', 'half-up', 'down', 'up'];

/** A formula of units that fit, whatever units the inputs have. */
function anyFormula(names: readonly string[]): string {
  const [a = 'a', b = '2', c = '3'] = names;
  const n = `${index(90) + 10}.${index(90) + 10}`;
  const mode = pick(MODES).replace('-', '_');
  const templates = [
    `${a}`,
    `${a} * ${n} - ${a} / 3`,
    `-(${a} - ${a} * 2) / ${n}`,
    `max(${a}, ${a} * 0.9, ${a} / ${n})`,
    `min(${a} * 2, ${a} + ${a} / ${n})`,
    `round(${a} / 7, ${index(6)}, ${mode}) * ${n}`,
    `if(${n} < 50, ${a}, abs(${a} - ${a} * 3))`,
  ];
  const others = [b, c].filter((each) => !/^\d/.test(each)).map((each) => ` * ${each}`);
  return `(${pick(templates)})${others.join('')}`;
}

const PERIODS = ['M', 'M-1', '3M-1', 'Q-1', 'M-1:16/M:15', 'S', '5S', 'S-1', '3S-2', '2S+1', 'Y'];

function anyPrice(known: readonly Known[]) {
  const price = pick(known);
  const statistic = maybe(0.4, pick(['average', 'first', 'last', 'min', 'max']));
  const isWide = RANDOM() < 0.2;
  const converts = !price.isPayable;
  const rounding = {
    session: maybe(0.5, index(4)),
    average: index(4),
    mode: maybe(0.7, pick(MODES)),
  };
  const input = {
    code: price.code,
    side: isWide ? undefined : maybe(0.6, pick(['low', 'mid', 'high'])),
    period: pick(PERIODS),
    statistic: isWide ? undefined : statistic,
    currency: converts ? maybe(0.5, pick(['USD', 'CNY', 'EUR', 'JPY'])) : undefined,
    unitOfMeasure: price.isMass ? maybe(0.4, pick(['lb', 't', 'kg', 'oz t'])) : undefined,
    vat: price.hasVat ? maybe(0.7, 'exclude') : undefined,
    method: isWide ? 'mid-of-rounded-averages' : undefined,
    rounding: isWide || RANDOM() < 0.3 ? rounding : undefined,
  };
  return { price, input };
}

/** The short form `payables`, whose references the service finds. */
function anyPayables(known: readonly Known[]) {
  const payables = known.filter(({ isPayable }) => isPayable);
  const chosen = [...new Set(Array.from({ length: 1 + index(4) }, () => pick(payables)))];
  return {
    payables: chosen.map(({ code }) => ({
      code,
      content: chosen.length > 1 || RANDOM() < 0.8 ? `${index(40)}.${index(100)}` : undefined,
      side: maybe(0.5, pick(['low', 'mid', 'high'])),
    })),
    period: pick(PERIODS),
    // One session has no average of a month, which some references are.
    referencePeriod: pick(PERIODS.filter((period) => !/^S/.test(period))),
    currency: pick(['USD', 'CNY', 'EUR']),
    unitOfMeasure: pick(['lb', 't', 'kg']),
    anchor: pick(chosen[0]?.days.slice(-200) ?? []),
    result: maybe(0.5, { decimals: index(6), mode: pick(MODES) }),
    options: { decimalsAsText: true },
  };
}

interface Referenced {
  readonly code: string;
  readonly references: readonly { code: string; side: string; validFrom: string }[];
}

/** The stored references of payables, from SQL, by code. */
async function storedReferences(): Promise<ReadonlyMap<string, Referenced['references']>> {
  const { rows } = await database.pool.query<Referenced>(
    `select code, payable_reference as references from price where price_type = 'payable'`,
  );
  return new Map(rows.map(({ code, references }) => [code, references]));
}

/** The difference between the expanded short form and its request; null for none. */
function expansionFault(
  request: ReturnType<typeof anyPayables>,
  { formula, inputs }: { formula: string; inputs: Readonly<Record<string, Receipt>> },
  stored: ReadonlyMap<string, Referenced['references']>,
): string | null {
  const terms = request.payables.map(({ code, content, side = 'mid' }, at) => {
    const [payable, reference] = [inputs[`payable${at + 1}`], inputs[`reference${at + 1}`]];
    const wanted = stored.get(code)?.[0];
    const isRight =
      payable?.code === code &&
      payable.side === side &&
      payable.period === request.period &&
      reference?.code === wanted?.code &&
      reference?.side === wanted?.side &&
      reference?.period === request.referencePeriod;
    const names = ['payable', 'reference', ...(content === undefined ? [] : ['content'])];
    const assay = inputs[`content${at + 1}`]?.exact ?? null;
    const isAssayed =
      content === undefined ||
      (assay !== null && isEqual(fractionOf(assay), fractionOf(`${content}/100`)));
    return isRight && isAssayed ? names.map((name) => `${name}${at + 1}`).join(' * ') : 'wrong';
  });
  return terms.join(' + ') === formula ? null : `expanded to ${formula}`;
}

function anyRequest(known: readonly Known[]) {
  if (RANDOM() < 0.2) return anyPayables(known);
  const first = anyPrice(known);
  const others = [
    () => anyPrice(known).input,
    () => ({ rate: pick(['CNY/USD', 'USD/EUR', 'EUR/CNY', 'JPY/USD']), period: pick(PERIODS) }),
    () => ({ value: `${index(200) - 50}.${index(100)}`, unit: pick(['%', '1', 'lb/t', 'USD/t']) }),
  ];
  const inputs: Record<string, object> = { a: first.input };
  if (RANDOM() < 0.6) inputs['b'] = pick(others)();
  if (RANDOM() < 0.3) inputs['c'] = pick(others)();
  const anchor = pick(first.price.days);
  return {
    formula: anyFormula(Object.keys(inputs)),
    inputs,
    anchor,
    result: maybe(0.5, { decimals: index(6), mode: pick(MODES) }),
    options: { decimalsAsText: true },
  };
}

t.test('2,000 random calculations equal a recomputation from their receipts alone', async (t) => {
  const known = await knownPrices();
  const days = new Map(known.map((each) => [each.code, each.days]));
  const stored = await storedReferences();
  let recomputed = 0;
  let shortForms = 0;
  let tried = 0;
  let taxed = 0;
  const faults: string[] = [];
  while (recomputed < 2_000 && tried < 6_000) {
    tried += 1;
    const request = anyRequest(known);
    const answer = await calculate(service, request);
    if (violationsOf(answer).every((each) => each.endsWith('/missing sessions_missing'))) {
      if (answer.status === 400) continue;
    }
    if (answer.status !== 200) {
      faults.push(`${answer.status} ${violationsOf(answer)} ${JSON.stringify(request)}`);
      continue;
    }
    const [result] = answer.json.data;
    for (const input of Object.values<{ code?: string; from: string; to: string }>(result.inputs)) {
      const all = days.get(input.code ?? '');
      if (all === undefined || input.from === null) continue;
      const due = all.filter((day) => day >= input.from && day <= input.to);
      const used = (input as unknown as { sessions: { date: string }[] }).sessions;
      if (due.join() !== used.map(({ date }) => date).join()) faults.push(`sessions ${input.code}`);
    }
    if (result.value === null) {
      const codes = result.reasons.map(({ code }: { code: string }) => code);
      const why = ['no_sessions', 'side_missing', 'rate_missing', 'series_begins_later'];
      if (!why.some((each) => codes.includes(each)))
        faults.push(`null: ${JSON.stringify(request)}`);
      continue;
    }
    recomputed += 1;
    const sessions = Object.values<{ sessions?: { vat: string | null }[] }>(result.inputs).flatMap(
      (input) => input.sessions ?? [],
    );
    if (sessions.some(({ vat }) => vat !== null)) taxed += 1;
    const difference = differenceOf(result);
    if (difference !== null) faults.push(`${difference}: ${JSON.stringify(request)}`);
    if (!('payables' in request)) continue;
    shortForms += 1;
    const fault = expansionFault(request, result, stored);
    if (fault !== null) faults.push(`${fault}: ${JSON.stringify(request)}`);
  }
  t.same(faults.slice(0, 5), []);
  t.equal(recomputed, 2_000, `${tried} were tried`);
  t.ok(taxed > 200, `${taxed} without VAT`);
  t.ok(shortForms > 200, `${shortForms} of payables`);
});
