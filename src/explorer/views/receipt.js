// The conversion receipt of each price.
import { NOTHING } from '../texts.js';
import { html } from '../ui.js';

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

/** @param records exact records with a conversion each */
export const Receipt = ({ records }) => html`
  <section class="panel flush">
    <h2>Conversion</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Conversion receipts">
      <table class="list receipt stack">
        <thead>
          <tr>
            <th scope="col">Code</th>
            <th scope="col">Status</th>
            <th scope="col">Reason</th>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">Factor</th>
            <th scope="col">Rates of</th>
            <th scope="col">Rounding</th>
          </tr>
        </thead>
        <tbody>
          ${records.map(
            ({
              code,
              conversion: { status, reason, from, to, unitFactor, source, rounding },
            }) => html`
              <tr key=${code}>
                <th scope="row" class="code">${code}</th>
                <td><span class=${`status ${status}`} title=${WORDS[status]}>${status}</span></td>
                <td data-label="Reason">${reason ?? NOTHING}</td>
                <td data-label="From">${quotationText(from)}</td>
                <td data-label="To">${quotationText(to)}</td>
                <td class="figure" data-label="Factor">${factorText(unitFactor)}</td>
                <td data-label="Rates of">${source ?? NOTHING}</td>
                <td data-label="Rounding">${rounding ?? NOTHING}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  </section>
`;
