import type { VatChange } from '../../db/reference/vat-rates.ts';
import { referenceCommand } from './reference-file.ts';

/** A change on one line. */
function changeLine({ country, from, before, after }: VatChange): string {
  const sign = before === null ? 'new' : after === null ? 'ended' : 'changed';
  const rates = [before, after].filter((each) => each !== null);
  return `${sign} ${country} from ${from}: ${rates.map((rate) => `${rate} %`).join(' → ')}`;
}

/** Adds `load vat`. */
export const addLoadVat = referenceCommand<VatChange>({
  name: 'vat',
  summary: 'rates of value added tax by country and day (docs/loading.md)',
  description: 'Loads the rates of value added tax of some countries from a YAML file.',
  stays:
    'A country is stated whole: its other rates end. Countries that the file\n' +
    'does not name keep their rates.',
  examples: ['vat.yaml --dry-run', 'vat.yaml --reason "13 % since April 2019"'],
  heading: 'Rates of VAT',
  line: changeLine,
  load: async () => (await import('../../ingest/vat/load-vat.ts')).loadVat,
});
