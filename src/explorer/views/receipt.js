// The conversion receipt of each price.
import { NOTHING } from '../texts.js';
import { html, ScrollTable } from '../ui.js';

const WORDS = {
  converted: 'converted',
  partial: 'converted in part',
  unchanged: 'unchanged',
  'not-applicable': 'not applicable',
  refused: 'refused',
};

const quotationText = (quotation) =>
  quotation ? [quotation.currency, quotation.unitOfMeasure].filter(Boolean).join(' per ') : NOTHING;

const factorText = (factor) => (factor ? `× ${factor.multiply} ÷ ${factor.divide}` : NOTHING);

const HEADS = [
  ['Code'],
  ['Status'],
  ['Reason'],
  ['From'],
  ['To'],
  ['Factor'],
  ['Rates of'],
  ['Rounding'],
];

/** @param records exact records with a conversion each */
export const Receipt = ({ records }) => html`
  <section class="panel flush">
    <h2>Conversion</h2>
    <${ScrollTable} name="Conversion receipts" kind="list receipt stack" heads=${HEADS}>
      ${records.map(
        ({
          code,
          conversion: { status, reason, from, to, unitFactor, source, rates, vat, rounding },
        }) => html`
          <tr key=${code}>
            <th scope="row" class="code">${code}</th>
            <td><span class=${`status ${status}`} title=${WORDS[status]}>${status}</span></td>
            <td data-label="Reason">${reason ?? NOTHING}</td>
            <td data-label="From">${quotationText(from)}</td>
            <td data-label="To">${quotationText(to)}</td>
            <td class="figure" data-label="Factor">${factorText(unitFactor)}</td>
            <td data-label="Rates of">${source ?? NOTHING}${rates && `, ${rates}`}${vat && `, VAT ${vat}`}</td>
            <td data-label="Rounding">${rounding ?? NOTHING}</td>
          </tr>
        `,
      )}
    </${ScrollTable}>
  </section>
`;
