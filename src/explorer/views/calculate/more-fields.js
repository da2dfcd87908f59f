// The fields of a price input that are rarely needed.
import { html } from '../../ui.js';
import { optionsOf } from './form.js';

const STATISTICS = optionsOf(['average', 'first', 'last', 'min', 'max']);
const METHODS = optionsOf(['mean-of-mids', 'mid-of-rounded-averages']);
const MODES = optionsOf(['half-even', 'half-up', 'down', 'up']);
const VAT = optionsOf(['as-published', 'exclude']);
const MISSING = [
  ['refuse', 'refuse'],
  ['skip', 'skip the day'],
  ['previous', 'session before'],
  ['next', 'session after'],
];

/** @param props `field(member, label, others)` makes a field of the input */
export const MoreFields = ({ input: { members }, field }) => html`
  <div class="parts">
    ${field('statistic', 'Statistic', { options: STATISTICS })}
    ${field('currency', 'In currency', { maxlength: 3, placeholder: 'as published' })}
    ${field('unitOfMeasure', 'In unit', { maxlength: 128, placeholder: 'as published' })}
    ${field('missing', 'Missing days', { options: MISSING })}
    ${
      ['previous', 'next'].includes(members.missing) &&
      field('maxDays', 'At most days away', { inputmode: 'numeric', placeholder: '5' })
    }
    ${field('vat', 'VAT', { options: VAT })}
    ${field('method', 'Method of the mid', { options: METHODS })}
    ${field('session', 'Decimals of a session', { inputmode: 'numeric', placeholder: 'none' })}
    ${field('average', 'Decimals of the average', { inputmode: 'numeric', placeholder: 'none' })}
    ${field('mode', 'Rounding', { options: MODES })}
  </div>
`;
