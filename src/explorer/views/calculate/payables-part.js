// The form of the value of payables: their codes with contents, and the periods that they share.
import { PAYABLES_MAX, payableOf } from '../../calculation.js';
import { anchorFor } from '../../dates.js';
import { isPayable } from '../../texts.js';
import { html } from '../../ui.js';
import { Search } from '../search.js';
import { Field, optionsOf, periodHint } from './form.js';

const SIDES = optionsOf(['mid', 'low', 'high']);

/** A payable with its content. */
const Payable = ({ app, view, markets, payable, place, receipts, at, change, remove, pick }) => {
  const faults = (member) => at(`/payables/${place}/${member}`);
  const field = (member, label, others) => html`<${Field}
    label=${label}
    value=${payable[member]}
    edit=${(value) => change({ ...payable, [member]: value })}
    faults=${faults(member)}
    ...${others}
  />`;
  const found = receipts[`payable${place + 1}`];
  const reference = receipts[`reference${place + 1}`];
  return html`
    <fieldset class="input">
      <legend>Payable ${place + 1}</legend>
      ${
        payable.code === '' &&
        html`<${Search}
          id=${`pick-${payable.id}`}
          app=${app}
          view=${view}
          markets=${markets}
          label="Find a payable"
          accepts=${isPayable}
          pick=${(price) => pick(payable, price)}
        />`
      }
      <div class="parts">
        ${payable.code !== '' && field('code', 'Code', { maxlength: 128, hint: found?.name })}
        ${field('side', 'Side', { options: SIDES })}
        ${field('content', 'Content, %', { inputmode: 'decimal', maxlength: 40, hint: payable.content || remove ? '' : 'Empty: for each tonne of the element' })}
      </div>
      ${reference && html`<p class="quiet small">Times ${reference.side} of ${reference.name} (${reference.code})</p>`}
      ${remove && html`<button type="button" aria-label=${`Remove payable ${place + 1}`} onClick=${remove}>Remove payable ${place + 1}</button>`}
    </fieldset>
  `;
};

/** @param props those of the form, and `receipts`, the inputs of the answer */
export const PayablesPart = ({ app, view, markets, draft, edit, violations, receipts }) => {
  const { payables, shared } = draft;
  const at = (pointer) => violations.filter((each) => each.pointer === pointer);
  const set = (next) => edit({ payables: next });
  const pick = (payable, price) => {
    const isFirst = payables.every(({ code }) => code === '');
    edit({
      payables: payables.map((each) => (each === payable ? { ...each, code: price.code } : each)),
      ...(isFirst && !draft.series ? { anchor: anchorFor(price.lastAssessedAt) } : {}),
    });
  };
  const field = (member, label, others) => html`<${Field}
    label=${label}
    value=${shared[member] ?? ''}
    edit=${(value) => edit({ shared: { ...shared, [member]: value } })}
    faults=${at(`/${member}`)}
    ...${others}
  />`;
  return html`
    ${payables.map(
      (payable, place) => html`
        <${Payable}
          key=${payable.id}
          app=${app}
          view=${view}
          markets=${markets}
          payable=${payable}
          place=${place}
          receipts=${receipts}
          at=${at}
          pick=${pick}
          change=${(next) => set(payables.map((each) => (each === payable ? next : each)))}
          remove=${payables.length > 1 && (() => set(payables.filter((each) => each !== payable)))}
        />
      `,
    )}
    <div class="row">
      <button
        type="button"
        disabled=${payables.length >= PAYABLES_MAX}
        onClick=${() => set([...payables, payableOf()])}
      >Add payable</button>
    </div>
    <div class="parts">
      ${field('period', 'Period of the payables', { list: 'periods', required: true, hint: periodHint(shared.period, receipts.payable1), wide: true })}
      ${field('referencePeriod', 'Period of the reference prices', { list: 'periods', hint: shared.referencePeriod ? periodHint(shared.referencePeriod, receipts.reference1) : 'As that of the payables', wide: true })}
      ${field('currency', 'In currency', { maxlength: 3, placeholder: 'as published' })}
      ${field('unitOfMeasure', 'In unit', { maxlength: 128, placeholder: 'as published' })}
    </div>
  `;
};
