import { type DecimalColumn, VALUE_NAMES, type ValueName } from '../../conversion/columns.ts';
import { Problem } from '../../errors.ts';
import { Slice } from '../../std/turns.ts';
import type { Plan } from '../plan/plan.ts';
import type { Contents, RenderContext } from './contents.ts';
import { Int128, PRECISION } from './int128.ts';
import { sharedValues } from './rows.ts';
import { isComputed, type TableColumn, tableColumns } from './table.ts';

/** True if a column holds numbers of points, which a conversion or an aggregate computes. */
const isValue = (name: string): name is ValueName =>
  (VALUE_NAMES as readonly string[]).includes(name);

/** The option that causes the digits that do not fit. */
function placeOf({ options }: Plan, name: string): string {
  if (!isValue(name)) return 'includeSummary';
  if (options.decimals === null) return 'decimals';
  if (options.currency !== null) return 'currency';
  return options.unitOfMeasure === null ? 'aggregate' : 'unitOfMeasure';
}

function beyond(plan: Plan, { name, scale }: TableColumn, code: string): Problem {
  const place = placeOf(plan, name);
  const limits = `${scale} decimals and ${PRECISION - scale} digits before them`;
  const instead =
    place === 'decimals' ? 'set decimals, or request text/csv' : 'request text/csv instead';
  const detail = `${name} of ${code} has a number beyond ${limits}; ${instead}`;
  return new Problem('validation_failed', 'A number does not fit its column; errors says which', {
    errors: [{ pointer: `/options/${place}`, code: 'out_of_range', detail }],
  });
}

/** True if each number of a column fits a scale. */
function isFitting(column: DecimalColumn, scale: number, number: Int128): boolean {
  for (let index = 0; index < column.scaled.length; index += 1) {
    const scaled = column.scaled[index] as number;
    // A safe integer with as many decimals or fewer has no more than 34 digits.
    if (Number.isNaN(scaled)) continue;
    if (Number.isFinite(scaled) && (column.scale[index] as number) <= scale) continue;
    if (!number.setPoint(column, index, scale)) return false;
  }
  return true;
}

/**
 * Checks that all numbers of a response fit their columns, before its first byte. Stored prices
 * always fit and are not read. A conversion or a change in percent may have more digits.
 * @throws Problem `validation_failed`
 */
export async function checkTable(
  context: RenderContext,
  records: AsyncIterable<Contents>,
): Promise<void> {
  const { plan } = context;
  const { options } = plan;
  const columns = tableColumns(plan).filter(({ name, kind }) => {
    if (kind !== 'decimal' || name.startsWith('fx')) return false;
    return isValue(name) ? isComputed(plan) : options.includeSummary;
  });
  if (columns.length === 0) return;
  const number = new Int128();
  const slice = new Slice();
  for await (const contents of records) {
    const shared = options.includeSummary ? sharedValues(context, contents) : {};
    for (const column of columns) {
      const { name, scale } = column;
      const points = isValue(name) ? contents.points?.[name] : undefined;
      const value = shared[name];
      const fits =
        points !== undefined
          ? isFitting(points, scale, number)
          : typeof value !== 'object' || !value || number.setDecimal(value.decimal, scale);
      if (!fits) throw beyond(plan, column, contents.price.code);
    }
    await slice.yieldIfOver();
  }
}
