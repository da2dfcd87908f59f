import { MEAN_PERIODS } from '../../../catalog/analytics.ts';
import type { DecimalColumn, PointColumns } from '../../../conversion/columns.ts';
import { dayText } from '../../../std/days.ts';
import { decimalText } from '../../../std/decimal.ts';
import type { Answer } from '../../answer/answer.ts';
import type { Plan } from '../../plan/plan.ts';
import type { Contents, Description } from '../points.ts';

/** The entries of a specification that say where the values of a price come from. */
const CREDITS = ['source', 'credit', 'licence', 'license'];

/** The remarks of a specification about the values of its price. */
interface Notes {
  /** The source with its credit and licence. */
  readonly source: string | null;
  readonly vat: string | null;
  readonly isSample: boolean;
}

/** The remarks about the numbers of a record. */
export function notesOf({ price, receipt }: Pick<Description, 'price' | 'receipt'>): Notes {
  const { specification } = price;
  const entries = new Map(
    specification.map(({ name, value }) => [name.toLowerCase(), value] as const),
  );
  const credits = CREDITS.flatMap((name) => entries.get(name) ?? []);
  return {
    source: credits.length === 0 ? null : credits.join(', '),
    vat: receipt?.vat === 'excluded' ? receipt.vat : (entries.get('vat') ?? null),
    isSample: entries.has('sample data'),
  };
}

const unitText = ({ currency, unitOfMeasure }: Description['currencyAndUnit']): string =>
  currency === null ? unitOfMeasure.symbol : `${currency.iso}/${unitOfMeasure.symbol}`;

/** A number of a column, which is not null. */
function numberText({ scaled, scale, wide }: DecimalColumn, index: number): string {
  const digits = scaled[index] as number;
  if (!Number.isFinite(digits)) return `${wide?.get(index)}`;
  return decimalText({ digits: BigInt(digits), scale: scale[index] as number });
}

const MONTH = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** The time of a point: ` on 2026-06-30`, `, mean of May 2024`. */
function timeText(points: PointColumns, index: number, price: Description['price'], plan: Plan) {
  const { aggregate } = plan.options;
  const period = aggregate?.period ?? MEAN_PERIODS[price.observes];
  const word = aggregate === null || aggregate.method === 'average' ? 'mean' : aggregate.method;
  const start = dayText((points.periods?.start ?? points.day)[index] as number);
  if (period === null) return ` on ${start}`;
  if (period === 'month') return `, ${word} of ${MONTH.format(new Date(start))}`;
  if (period === 'year') return `, ${word} of ${start.slice(0, 4)}`;
  return `, ${word} of the ${period} from ${start}`;
}

/** The newest value of a record, with its unit and time: `24.4 USD/lb on 2026-06-30`. */
function valueText({ points, price, currencyAndUnit }: Contents, plan: Plan): string | null {
  if (points === null) return price.last_date && `newest value of ${price.last_date}`;
  const index = points.mid.scaled.findLastIndex((each) => !Number.isNaN(each));
  if (index < 0) return null;
  const time = timeText(points, index, price, plan);
  return `${numberText(points.mid, index)} ${unitText(currencyAndUnit)}${time}`;
}

/** The citation of a price, in the format of the explorer (`take-away/cite.js`). */
export function citationOf(contents: Contents, { metadata, context }: Answer): string {
  const { price, receipt, currencyAndUnit } = contents;
  const { source, vat, isSample } = notesOf(contents);
  const isConverted = receipt?.status === 'converted' || receipt?.status === 'partial';
  const parts = [
    `${price.name} (${price.code})${isConverted ? ` in ${unitText(currencyAndUnit)}` : ''}`,
    valueText(contents, context.plan),
    isSample && 'sample data',
    vat && `VAT ${vat}`,
    receipt?.source && `exchange rates: ${receipt.source}`,
    receipt?.source === 'SAMPLE' && 'sample exchange rates',
    `revision ${metadata.revision} of ${metadata.asOf.slice(0, 10)}`,
    source && `source: ${source}`,
    'Commodity Prices Service',
  ];
  return parts.filter(Boolean).join('; ');
}
