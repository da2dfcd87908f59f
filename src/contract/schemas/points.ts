import Type, { type TSchema } from 'typebox';
import { SPANS } from '../../catalog/analytics.ts';
import { Day, DECIMAL, decimal, Instant, nullable, open, ref, word } from './components.ts';

/** A figure of an answer. */
export const Decimal = Type.Unsafe({
  $id: 'Decimal',
  description: 'An exact decimal: a number, or with decimalsAsText a string with the same digits',
  anyOf: [{ type: 'number' }, { type: 'string', pattern: DECIMAL }],
});

const value = (description: string) => nullable(ref(Decimal), { description });

/** The rates of a converted point. */
export const PointRates = open(
  {
    date: Day('Day of the rates: that of the point, or the latest before it'),
    base: Type.String({ description: 'Currency that the source quotes against' }),
    from: decimal('Units of the price’s own currency for one of the base, as published'),
    to: decimal('Units of the requested currency for one of the base, as published'),
  },
  { $id: 'PointRates', description: 'The exchange rates that a converted point used' },
);

const PointMeanRate = open(
  {
    firstDate: Day('First rate day of the period'),
    lastDate: Day('Last rate day of the period'),
    days: Type.Integer({ minimum: 1, description: 'Number of rate days, all of the period' }),
    rate: decimal(
      'Mean of the cross rates of these days, rounded to 10 decimals for display: units of the ' +
        'requested currency for one of the price’s own',
    ),
  },
  { $id: 'PointMeanRate', description: 'The mean rate that a converted mean used' },
);

const currencyAndUnit = (description: string) =>
  open(
    {
      currency: nullable(Type.String({ description: 'ISO 4217 code' })),
      unitOfMeasure: Type.String({ description: 'Name of the unit' }),
    },
    { description },
  );

export const Conversion = open(
  {
    status: word(['converted', 'unchanged', 'not-applicable', 'refused', 'partial'], {
      description: '`partial`: some points, or figures of the summary, have no rate',
    }),
    reason: nullable(word(['payable', 'incompatible-unit', 'no-rate', 'no-vat-rate']), {
      description: 'Reason that the record, or some of its points or figures, was not converted',
    }),
    from: currencyAndUnit('Currency and unit of the price'),
    to: currencyAndUnit('Requested currency and unit'),
    unitFactor: nullable(open({ multiply: decimal('Times'), divide: decimal('Divided by') }), {
      description: 'Factor and divisor of the unit conversion',
    }),
    source: nullable(Type.String(), { description: 'Source of the exchange rates' }),
    rates: Type.Optional(
      word(['period-mean'], { description: 'Present if the rates are means of a month or year' }),
    ),
    vat: Type.Optional(
      word(['excluded', 'included', 'unknown'], {
        description:
          'With `vat`: `included` if the record could not be converted, `unknown` if the price ' +
          'is not known to include VAT and was not divided',
      }),
    ),
    rounding: nullable(Type.String(), { description: 'Rounding rule of converted values' }),
  },
  { $id: 'Conversion', description: 'How to recompute the figures of the record by hand' },
);

const Observed = open(
  { date: Day('Day of the assessment'), mid: value('Its mid') },
  { $id: 'SummaryAssessment' },
);

const Change = open(
  {
    absolute: ref(Decimal),
    percent: value('Difference in percent; null for a payable and if the base is not above 0'),
    baseDate: Day('Day of the assessment compared with: the last on or before the target day'),
  },
  {
    $id: 'SummaryChange',
    description: 'A difference, and the same in percent; of a payable in percentage points only',
  },
);

export const Summary = open(
  {
    latest: nullable(ref(Observed)),
    previous: nullable(ref(Observed)),
    changes: open(Object.fromEntries(SPANS.map((span) => [span, nullable(ref(Change))]))),
  },
  { $id: 'Summary', description: 'The latest assessment up to dateTo and its changes' },
);

const Point = open(
  {
    date: Day('Day of the assessment'),
    low: value('Low end, or null'),
    mid: value('Mid; not always the average of low and high. Null only if a rate is missing'),
    high: value('High end, or null'),
    publishedAt: Instant('Publication time of this value'),
    corrections: Type.Integer({ minimum: 0, description: 'Number of corrections since' }),
    fx: Type.Optional(ref(PointRates)),
    fxMean: Type.Optional(ref(PointMeanRate)),
    vatRate: Type.Optional(decimal('Rate of VAT in percent by which the point was divided')),
    periodStart: Type.Optional(Day('First day of the period of an aggregated point')),
    periodEnd: Type.Optional(Day('Last day of the period of an aggregated point')),
    observations: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Number of assessments in an aggregated point; 0 if none has a rate',
      }),
    ),
    observationsLeftOut: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Assessments of the period excluded because they have no rate; absent if there is none',
      }),
    ),
    movingAverage: Type.Optional(
      value('Mean of the last mids up to this one; null if there are too few, or one has no rate'),
    ),
    conversionReason: Type.Optional(
      word(['no-rate', 'no-vat-rate'], {
        description: 'Reason that this point was not converted; absent if it was',
      }),
    ),
  },
  { $id: 'Point', description: 'One assessment' },
);

export const Series = Type.Unsafe({
  $id: 'Series',
  type: 'array',
  items: ref(Point),
  description: 'Empty unless includeSeries is true',
});

/** The schemas of points and of values computed from them. */
export const POINT_COMPONENTS: readonly TSchema[] = [
  Decimal,
  PointRates,
  PointMeanRate,
  Conversion,
  Observed,
  Change,
  Summary,
  Point,
  Series,
];
