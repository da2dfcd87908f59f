import Type, { type TSchema } from 'typebox';
import {
  closed,
  Day,
  Instant,
  nullable,
  open,
  openWord,
  ref,
  textOrNull,
  Warning,
  word,
} from './components.ts';
import { ndjsonSchema } from './formats.ts';
import { OPTIONS, PRINTABLE } from './options.ts';
import { Decimal, PointRates } from './points.ts';

/*
 * `POST /v3/calculations`. A request has one of several forms: a formula over named inputs, or a
 * short form that stands for one. The calendar texts, formulas and units are checked by their
 * parsers.
 */

/** Most characters of a formula. */
const FORMULA_MAX = 512;
/** Most inputs of a calculation. */
export const INPUTS_MAX = 20;
/** Most anchors of a calculation. */
export const ANCHORS_MAX = 400;
/** Most sessions that the inputs of all anchors use together. */
export const SESSIONS_MAX = 50_000;
/** Most payables of the short form: each has three inputs. */
export const PAYABLES_MAX = 6;
/** Most days between a missing session and its substitute. */
const DAYS_MAX = 31;
/** Most decimals of a rounding. */
const DECIMALS_MAX = 10;

const text = (maxLength: number, description?: string) =>
  Type.String({ minLength: 1, maxLength, ...(description === undefined ? {} : { description }) });

const mode = word(['half-even', 'half-up', 'down', 'up'], {
  description: 'Default `half-even`; ties of `half-up` and `up` go away from zero',
});

const decimals = (description: string) =>
  Type.Integer({ minimum: 0, maximum: DECIMALS_MAX, description });

const period = text(32, '`2026-06`, `M-1`, `4M-1`, `M-1:16/M:15`, `S`, `5S+1`');
/** The database compares it. */
const code = Type.String({ minLength: 1, maxLength: 128, pattern: PRINTABLE });

const InputRounding = closed(
  {
    session: Type.Optional(decimals('Of each converted session')),
    average: Type.Optional(decimals('Of the input')),
    mode: Type.Optional(mode),
  },
  { $id: 'InputRounding', description: 'Roundings within an input; none by default' },
);

const side = word(['low', 'mid', 'high'], { description: 'Default `mid`' });

/** The members of a price input beside its code, which short forms have too. */
const priceMembers = {
  period: Type.Optional(period),
  side: Type.Optional(side),
  statistic: Type.Optional(
    word(['average', 'first', 'last', 'min', 'max'], { description: 'Default `average`' }),
  ),
  currency: Type.Optional(text(64, 'ISO 4217: converts each session at its own day')),
  unitOfMeasure: Type.Optional(text(128, 'Id, name or symbol')),
  vat: Type.Optional(
    word(['as-published', 'exclude'], {
      description: '`exclude`: divides each session by 1 + the rate of VAT of its day',
    }),
  ),
  missing: Type.Optional(
    word(['refuse', 'skip', 'previous', 'next'], { description: 'Default `refuse`' }),
  ),
  maxDays: Type.Optional(Type.Integer({ minimum: 1, maximum: DAYS_MAX })),
  method: Type.Optional(word(['mean-of-mids', 'mid-of-rounded-averages'])),
  rounding: Type.Optional(InputRounding),
};

/** The members of the short form `payables` that all of its payables or references share. */
const { currency, unitOfMeasure, vat, missing, maxDays } = priceMembers;
const payablesMembers = {
  period: Type.Optional(period),
  referencePeriod: Type.Optional(period),
  ...{ currency, unitOfMeasure, vat, missing, maxDays },
};

/** A price or payable over a period. */
export const PriceInput = closed({ code, ...priceMembers });

/** An exchange rate over a period. */
export const RateInput = closed(
  {
    rate: text(64, 'Such as `CNY/USD`: yuan for one dollar'),
    period: Type.Optional(period),
  },
  { $id: 'RateInput', description: 'The mean of all rate days of a period' },
);

/** A number of the caller. */
export const NumberInput = closed(
  {
    value: text(40, 'A decimal'),
    unit: Type.Optional(text(64, '`%`, `1` (default), or a product or quotient: `USD/t`')),
    note: Type.Optional(text(200)),
  },
  { $id: 'NumberInput', description: 'A number of the caller' },
);

/** A series of anchors. */
export const Anchors = closed(
  { from: text(10, '`YYYY-MM`'), to: text(10), every: word(['month', 'quarter', 'year']) },
  { $id: 'Anchors', description: `First days of periods, at most ${ANCHORS_MAX}` },
);

/** A payable of the short form `payables`. */
export const ValuedPayable = closed(
  {
    code,
    content: Type.Optional(
      text(
        40,
        'Percent of the element, a decimal. A single payable without it: of the contained element',
      ),
    ),
    side: Type.Optional(side),
  },
  { $id: 'ValuedPayable', description: 'A payable × its reference × the content' },
);

const ResultRules = closed(
  {
    unit: Type.Optional(text(64, 'Another unit is rejected')),
    decimals: Type.Optional(decimals('Default 6 significant digits, at least 2 decimals')),
    mode: Type.Optional(mode),
  },
  { $id: 'ResultRules' },
);

const CalculationOptions = closed({
  revision: Type.Optional(OPTIONS.revision.schema),
  asOf: Type.Optional(OPTIONS.asOf.schema),
  decimalsAsText: Type.Optional(Type.Boolean()),
  receipt: Type.Optional(Type.Boolean()),
});

const formula = Type.String({
  minLength: 1,
  maxLength: FORMULA_MAX,
  description: 'Of the inputs; without it, the only input',
});

/** The members of every form. Inputs and anchors are checked one by one. */
const shared = {
  anchor: Type.Optional(Type.Unsafe({})),
  result: Type.Optional(ResultRules),
  options: Type.Optional(CalculationOptions),
};

/** The schema of each form of a request, by the member that only this form has. */
export const CALCULATION_FORMS = {
  inputs: closed({
    formula: Type.Optional(formula),
    inputs: Type.Unsafe({ type: 'object' }),
    ...shared,
  }),
  average: closed({ average: code, ...priceMembers, ...shared }),
  convertBasis: closed({ convertBasis: text(8), code, ...priceMembers, ...shared }),
  payables: closed({
    payables: Type.Unsafe({ type: 'array' }),
    ...payablesMembers,
    ...shared,
  }),
} as const;

/** The schemas of the document, in which the objects within others are components. */
const documented = { ...priceMembers, rounding: Type.Optional(ref(InputRounding)) };

const PriceInputDocument = closed(
  { code, ...documented },
  { $id: 'PriceInput', description: 'A price or payable over a period' },
);

const CalculationInput = Type.Unsafe({
  $id: 'CalculationInput',
  anyOf: [ref(PriceInputDocument), ref(RateInput), ref(NumberInput)],
});

const OptionsDocument = closed(
  {
    revision: Type.Optional(textOrNull),
    asOf: Type.Optional(textOrNull),
    decimalsAsText: Type.Optional(Type.Boolean()),
    receipt: Type.Optional(Type.Boolean({ description: 'False omits inputs and steps' })),
  },
  { $id: 'CalculationOptions' },
);

const CalculationRequest = closed(
  {
    formula: Type.Optional(formula),
    inputs: Type.Optional(
      Type.Unsafe({
        type: 'object',
        maxProperties: INPUTS_MAX,
        additionalProperties: ref(CalculationInput),
      }),
    ),
    average: Type.Optional(code),
    convertBasis: Type.Optional(text(8, '`LCE`, or a contained metal such as `Co`')),
    code: Type.Optional(code),
    payables: Type.Optional(
      Type.Array(ref(ValuedPayable), { minItems: 1, maxItems: PAYABLES_MAX }),
    ),
    referencePeriod: Type.Optional(text(32, 'Of the references of `payables`; default `period`')),
    ...documented,
    anchor: Type.Optional(
      Type.Unsafe({
        description: 'The day that relative periods count from',
        anyOf: [{ type: 'string' }, ref(Anchors)],
      }),
    ),
    result: Type.Optional(ref(ResultRules)),
    options: Type.Optional(ref(OptionsDocument)),
  },
  {
    $id: 'CalculationRequest',
    description:
      'A formula over `inputs`, or a short form with the members of a price input: `average`, ' +
      '`convertBasis` with `code`, or `payables`',
  },
);

const amount = nullable(ref(Decimal));
const exact = nullable(
  Type.String({ description: 'A decimal if it ends, else `numerator/denominator`' }),
);
const optionalText = Type.Optional(textOrNull);
const integerOrNull = Type.Unsafe({ type: ['integer', 'null'] });

const Session = open(
  {
    date: Day('Day of the assessment'),
    published: amount,
    low: Type.Optional(amount),
    high: Type.Optional(amount),
    fx: nullable(ref(PointRates)),
    vat: nullable(Type.String(), { description: 'Rate of VAT in percent; null if not divided' }),
    substituteFor: textOrNull,
  },
  { $id: 'Session', description: 'A session as published, and the rates of its day' },
);

const InputReceipt = open(
  {
    code: optionalText,
    rate: optionalText,
    name: optionalText,
    side: optionalText,
    period: optionalText,
    from: optionalText,
    to: optionalText,
    statistic: optionalText,
    method: optionalText,
    rounding: Type.Optional(
      nullable(open({ session: integerOrNull, average: integerOrNull, mode: Type.String() })),
    ),
    value: amount,
    exact,
    unit: Type.String(),
    observations: Type.Optional(Type.Integer()),
    unitFactor: Type.Optional(nullable(open({ multiply: Type.String(), divide: Type.String() }))),
    source: optionalText,
    sessions: Type.Optional(Type.Array(ref(Session))),
    notUsed: Type.Optional(
      Type.Array(open({ date: Type.String(), why: Type.String(), name: textOrNull })),
    ),
    note: optionalText,
  },
  { $id: 'InputReceipt', description: 'An input: what its value is computed from' },
);

const CalculationReason = open(
  {
    code: openWord([
      ...['calendar_unknown', 'period_not_over', 'sessions_not_published', 'rates_not_published'],
      ...['series_begins_later', 'no_sessions', 'side_missing', 'rate_missing'],
    ]),
    input: Type.String({ description: 'Its name' }),
    detail: Type.String(),
  },
  { $id: 'CalculationReason' },
);

const CalculationResult = open(
  {
    anchor: textOrNull,
    value: amount,
    exact,
    unit: Type.String(),
    status: openWord(['final', 'provisional', 'unverified'], {
      description: '`unverified`: no calendar says which sessions were due',
    }),
    reasons: Type.Array(ref(CalculationReason), { description: 'Why it is not final' }),
    formula: Type.String(),
    inputs: Type.Optional(Type.Unsafe({ type: 'object', additionalProperties: ref(InputReceipt) })),
    steps: Type.Optional(
      Type.Array(open({ text: Type.String(), exact: Type.String(), unit: Type.String() })),
    ),
    rounding: Type.String(),
  },
  { $id: 'CalculationResult', description: 'The result for one anchor, with its receipt' },
);

const CalculationAnswer = open(
  {
    $metadata: open({
      revision: Type.String(),
      asOf: Instant('Commit time of the revision'),
      warnings: Type.Array(ref(Warning)),
    }),
    data: Type.Array(ref(CalculationResult)),
  },
  { $id: 'CalculationAnswer' },
);

const CalculationCsv = Type.Unsafe({
  $id: 'CalculationCsv',
  type: 'string',
  description: 'A row for each anchor: anchor, value, unit, status, then the inputs',
});

const CalculationLines = ndjsonSchema('CalculationLines', CalculationResult);

/** The request body in the OpenAPI document. */
export const calculationBody = ref(CalculationRequest);

/** The answer in each of its formats. */
export const calculationContent = {
  description: 'The results',
  content: {
    'application/json': { schema: ref(CalculationAnswer) },
    'text/csv': { schema: ref(CalculationCsv) },
    'application/x-ndjson': { schema: ref(CalculationLines) },
  },
};

export const CALCULATION_COMPONENTS: readonly TSchema[] = [
  InputRounding,
  PriceInputDocument,
  RateInput,
  NumberInput,
  Anchors,
  ValuedPayable,
  ResultRules,
  CalculationInput,
  OptionsDocument,
  CalculationRequest,
  Session,
  InputReceipt,
  CalculationReason,
  CalculationResult,
  CalculationAnswer,
  CalculationCsv,
  CalculationLines,
];
