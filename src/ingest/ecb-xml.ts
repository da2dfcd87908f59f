import { isDay } from './dates.ts';
import type { RateReader } from './format.ts';
import { type Problems, Refusal } from './problems.ts';
import type { RateRecord } from './records.ts';
import { attributeOf, feedXml, type Tag, type XmlListener } from './xml.ts';

const ENVELOPE = 'http://www.gesmes.org/xml/2002-08-01';
const RATES = 'http://www.ecb.int/vocabulary/2002-08-01/eurofxref';

/** Collects the rates of the cubes: Cube > Cube time > Cube currency rate. */
function listenerOf(records: RateRecord[], problems: Problems): XmlListener {
  let date = '';
  let isRoot = true;
  const checkRoot = ({ local, uri, name }: Tag, line: number): void => {
    if (isRoot && (local !== 'Envelope' || uri !== ENVELOPE)) {
      const message = 'The XML is not the ECB’s: its root is not gesmes:Envelope';
      throw new Refusal('invalid_layout', message, { line, value: name });
    }
    isRoot = false;
  };
  return {
    open(tag, line) {
      checkRoot(tag, line);
      if (tag.local !== 'Cube' || tag.uri !== RATES) return;
      const time = attributeOf(tag, 'time');
      const currency = attributeOf(tag, 'currency');
      if (time !== null) date = time;
      if (currency === null) return;
      const place = { line, column: currency, value: date };
      const rate = attributeOf(tag, 'rate') ?? '';
      if (isDay(date)) records.push({ kind: 'rate', line, currency, date, rate });
      else problems.reject('invalid_date', 'The rate stands in a cube without a real day', place);
    },
  };
}

/** Reads the ECB's XML: one day or many, on one line or on many, in either kind of quotes. */
export const readRatesXml: RateReader = async function* readRatesXml(bytes, { problems }) {
  const records: RateRecord[] = [];
  for await (const _ of feedXml(bytes, listenerOf(records, problems))) {
    if (records.length > 0) yield records.splice(0);
  }
  if (records.length > 0) yield records.splice(0);
};
