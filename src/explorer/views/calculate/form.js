// The form of a calculation.
import {
  freeName,
  INPUTS_MAX,
  inputOf,
  isName,
  nameOfMarket,
  renamed,
  valuedBy,
} from '../../calculation.js';
import { anchorFor } from '../../dates.js';
import { daysText, EXAMPLES, FORMS, isRelative, periodText } from '../../periods.js';
import { isPayable } from '../../texts.js';
import { Component, createRef, html, Later } from '../../ui.js';
import { Search } from '../search.js';

const moreFields = async () => (await import('./more-fields.js')).MoreFields;
const payablesPart = async () => (await import('./payables-part.js')).PayablesPart;

const SIDES = ['mid', 'low', 'high'];
const MODES = ['half-even', 'half-up', 'down', 'up'];

let fields = 0;

function fieldId() {
  fields += 1;
  return `field-${fields}`;
}

/** The violations of a field, below it. */
const Faults = ({ id, all }) =>
  all.length > 0 &&
  html`<span class="fault" id=${id} role="alert">${all.map(({ detail }) => detail).join('. ')}</span>`;

/** A labelled field with its violations and a hint. */
export class Field extends Component {
  id = fieldId();

  render({ label, value, edit, faults = [], hint, wide, options, children, ...others }) {
    const described = [faults.length > 0 && `${this.id}-fault`, hint && `${this.id}-hint`];
    const shared = {
      id: this.id,
      'aria-invalid': faults.length > 0 ? 'true' : null,
      'aria-describedby': described.filter(Boolean).join(' ') || null,
    };
    const typed = (event) => edit(event.target.value);
    return html`
      <div class=${wide ? 'part wide' : 'part'}>
        <label for=${this.id}>${label}</label>
        ${
          options
            ? html`<select ...${shared} onChange=${typed}>
                ${options.map(([id, name]) => html`<option value=${id} selected=${id === (value || options[0][0])}>${name}</option>`)}
              </select>`
            : html`<input type="text" autocomplete="off" spellcheck=${false} ...${shared} ...${others} value=${value} onInput=${typed} />`
        }
        ${children}
        ${hint && html`<span class="quiet small" id=${`${this.id}-hint`} aria-live="polite">${hint}</span>`}
        <${Faults} id=${`${this.id}-fault`} all=${faults} />
      </div>
    `;
  }
}

/** Options of a select whose names are their values. */
export const optionsOf = (names) => names.map((each) => [each, each]);

/** The explanation of a period, with the days of the answer where it has this period. */
export function periodHint(text, receipt) {
  if (!text) return FORMS;
  const words = periodText(text);
  if (words === null) return FORMS;
  const from = receipt?.from ?? receipt?.sessions?.[0]?.date;
  const to = receipt?.to ?? receipt?.sessions?.at(-1)?.date;
  const isAnswered = receipt?.period === text && from && isRelative(text);
  const days = isAnswered ? `: ${daysText(from, to)}` : '';
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${days}.`;
}

/** The members of each kind of input that have a field. */
const SHOWN = {
  price:
    'code side period statistic currency unitOfMeasure missing maxDays vat method session average mode'.split(
      ' ',
    ),
  rate: ['rate', 'period'],
  number: ['value', 'unit', 'note'],
};

/** The member that a pointer names, also within the roundings of an input; '' for the input. */
const memberOf = (pointer, name) =>
  pointer.slice(`/inputs/${name}`.length).replace('/rounding/', '/').slice(1);

const KINDS = { price: 'Price', rate: 'Exchange rate', number: 'Number' };

/** An input of a calculation. */
class InputPart extends Component {
  state = { isMore: false };

  toggle = ({ target }) => target.open && this.setState({ isMore: true });

  moreField = (...of) => this.field(...of);

  edit = (change) => {
    const { input, change: apply } = this.props;
    apply({ ...input, members: { ...input.members, ...change } });
  };

  faultsOf(member) {
    const { input, violations } = this.props;
    return violations.filter(({ pointer }) => memberOf(pointer, input.name) === member);
  }

  field(member, label, others = {}) {
    const { members } = this.props.input;
    return html`<${Field}
      label=${label}
      value=${members[member] ?? ''}
      edit=${(value) => this.edit({ [member]: value })}
      faults=${this.faultsOf(member)}
      ...${others}
    />`;
  }

  period() {
    const { input, receipt } = this.props;
    return this.field('period', 'Period', {
      list: 'periods',
      required: true,
      maxlength: 32,
      hint: periodHint(input.members.period ?? '', receipt),
      wide: true,
    });
  }

  /** The search for a price, while the input has no code. */
  pick() {
    const { app, view, markets, input, onPick } = this.props;
    const isValued = input.name === 'payable';
    return html`<${Search}
      key=${input.id}
      id=${`pick-${input.id}`}
      app=${app}
      view=${view}
      markets=${markets}
      label=${isValued ? 'Find a payable' : 'Find a price or payable'}
      accepts=${isValued ? isPayable : undefined}
      pick=${(price) => onPick(input, price)}
    />`;
  }

  price() {
    const { app, input, receipt } = this.props;
    const { isMore } = this.state;
    const { members } = input;
    const isOpen = SHOWN.price
      .slice(3)
      .some((name) => members[name] || this.faultsOf(name).length > 0);
    return html`
      ${!members.code && this.pick()}
      <div class="parts">
        ${members.code && this.field('code', 'Code', { maxlength: 128, hint: receipt?.name })}
        ${this.field('side', 'Side', { options: optionsOf(SIDES) })}
        ${this.period()}
      </div>
      <details open=${isOpen} onToggle=${this.toggle}>
        <summary>More: statistic, currency, missing days, rounding, VAT</summary>
        ${(isMore || isOpen) && html`<${Later} load=${moreFields} app=${app} input=${input} field=${this.moreField} />`}
      </details>
    `;
  }

  rate() {
    return html`
      <div class="parts">
        ${this.field('rate', 'Rate', { required: true, placeholder: 'CNY/USD', hint: 'CNY/USD: yuan for one dollar' })}
        ${this.period()}
      </div>
    `;
  }

  number() {
    return html`
      <div class="parts">
        ${this.field('value', 'Value', { required: true, inputmode: 'decimal', maxlength: 40 })}
        ${this.field('unit', 'Unit', { placeholder: '1', maxlength: 64, hint: '%, USD/t, lb/t …' })}
        ${this.field('note', 'Note', { maxlength: 200, placeholder: 'assay 4711', wide: true })}
      </div>
    `;
  }

  render({ input, rename, remove, violations }) {
    const own = violations.filter(
      ({ pointer }) => !SHOWN[input.kind].includes(memberOf(pointer, input.name)),
    );
    const faults = isName(input.name)
      ? own
      : [...own, { detail: 'A letter, then letters, digits and _' }];
    return html`
      <fieldset class="input">
        <legend>${KINDS[input.kind]} <code>${input.name}</code></legend>
        <div class="row spread">
          <${Field} label="Name" value=${input.name} edit=${rename} faults=${faults} required maxlength="32" />
          <button type="button" class="bare" aria-label=${`Remove ${input.name}`} onClick=${remove}>×</button>
        </div>
        ${this[input.kind]()}
      </fieldset>
    `;
  }
}

const SIGNS = ['+', '-', '*', '/', '(', ')'];
const CALLS = ['min(', 'max(', 'abs(', 'round(', 'step(', 'if('];

/** The formula, written or built by buttons. */
class FormulaPart extends Component {
  place = createRef();

  /** Puts a text at the cursor. */
  add(text) {
    const field = this.place.current.querySelector('input');
    const { selectionStart: from, selectionEnd: to, value } = field;
    const before = value.slice(0, from);
    const gap = before !== '' && !/[\s(]$/.test(before) && text !== ')' ? ' ' : '';
    const next = `${before}${gap}${text}`;
    this.props.edit({ formula: `${next}${value.slice(to)}` });
    setTimeout(() => {
      field.focus();
      field.setSelectionRange(next.length, next.length);
    });
  }

  button = (text) => html`
    <button type="button" onClick=${() => this.add(text)}><code>${text}</code></button>
  `;

  render({ draft, edit, violations }) {
    const { formula, inputs } = draft;
    const only = inputs.length === 1 ? inputs[0].name : '';
    return html`
      <div class="formula" ref=${this.place}>
        <${Field}
          label="Formula"
          value=${formula}
          edit=${(value) => edit({ formula: value })}
          maxlength="512"
          placeholder=${only}
          required=${inputs.length > 1}
          hint=${inputs.length === 1 && !formula ? `Without a formula the result is ${only}.` : ''}
          faults=${violations.filter(({ pointer }) => pointer === '/formula' || pointer === '/inputs')}
          wide=${true}
        />
        <div class="row keys" role="group" aria-label="Parts of the formula">
          ${inputs.map(({ name }) => this.button(name))}${[...SIGNS, ...CALLS].map(this.button)}
        </div>
      </div>
    `;
  }
}

/** The day or days from which relative periods count. */
function AnchorPart({ draft, edit, violations }) {
  const { anchor, series } = draft;
  const at = (name) => violations.filter(({ pointer }) => pointer === `/anchor${name}`);
  const change = (part) => edit({ series: { ...series, ...part } });
  const year = (anchor || '2026').slice(0, 4);
  return html`
    <div class="parts">
      <${Field}
        label="Counted from"
        value=${series ? 'series' : 'day'}
        options=${[['day', 'one day'], ['series', 'a series']]}
        edit=${(value) => edit({ series: value === 'series' ? { from: `${year}-01`, to: `${year}-12`, every: 'month' } : null })}
        faults=${series ? at('') : []}
      />
      ${
        series
          ? html`
              <${Field} label="First month" value=${series.from} edit=${(from) => change({ from })} faults=${at('/from')} required pattern="\\d{4}-\\d{2}" placeholder="2026-01" />
              <${Field} label="Last month" value=${series.to} edit=${(to) => change({ to })} faults=${at('/to')} required pattern="\\d{4}-\\d{2}" placeholder="2026-12" />
              <${Field} label="Every" value=${series.every} edit=${(every) => change({ every })} options=${optionsOf(['month', 'quarter', 'year'])} faults=${at('/every')} />
            `
          : html`<${Field}
              label="Day (anchor)"
              type="date"
              value=${anchor}
              edit=${(value) => edit({ anchor: value })}
              hint="Of the invoice, the bill of lading …"
              faults=${at('')}
            />`
      }
    </div>
  `;
}

const ResultPart = ({ draft, edit, violations }) => {
  const { result } = draft;
  const field = (name, label, others) => html`<${Field}
    label=${label}
    value=${result[name]}
    edit=${(value) => edit({ result: { ...result, [name]: value } })}
    faults=${violations.filter(({ pointer }) => pointer === `/result/${name}`)}
    ...${others}
  />`;
  return html`
    <div class="parts">
      ${field('unit', 'Unit to check', { placeholder: 'USD/t', maxlength: 64 })}
      ${field('decimals', 'Decimals', { inputmode: 'numeric', placeholder: 'as needed' })}
      ${field('mode', 'Rounding', { options: optionsOf(MODES) })}
    </div>
  `;
};

/**
 * The form of a calculation.
 * @param props `draft`, `edit(change)`, `submit()`, `violations` of the service, and `answer` of
 *   the draft or null
 */
export class CalculationForm extends Component {
  change(inputs) {
    this.props.edit({ inputs });
  }

  replace = (next) =>
    this.change(this.props.draft.inputs.map((each) => (each.id === next.id ? next : each)));

  rename(input, name) {
    const { draft, edit } = this.props;
    const inputs = draft.inputs.map((each) => (each === input ? { ...each, name } : each));
    const isTaken = draft.inputs.some((each) => each !== input && each.name === name);
    edit({ inputs, ...(isTaken ? {} : { formula: renamed(draft.formula, input.name, name) }) });
  }

  add(kind, members) {
    const { draft } = this.props;
    const name = freeName(kind === 'number' ? 'number' : kind, draft);
    this.change([...draft.inputs, inputOf(name, kind, members)]);
  }

  /** The code of an input, found by the search. An untouched anchor follows the price. */
  pick = (input, price) => {
    const { draft, edit } = this.props;
    if (input.name === 'payable' && price.reference) {
      edit({ ...valuedBy(price.code), anchor: anchorFor(price.lastAssessedAt) });
      return;
    }
    const isFirst = draft.inputs.every(({ members }) => !members.code);
    const next = { ...input, members: { ...input.members, code: price.code } };
    const inputs = draft.inputs.map((each) => (each.id === input.id ? next : each));
    const wanted = nameOfMarket(price.market);
    const isUnnamed = input.name === 'price' && isName(wanted);
    const name = isUnnamed ? freeName(wanted, draft) : input.name;
    edit({
      inputs: inputs.map((each) => (each.id === input.id ? { ...each, name } : each)),
      formula: renamed(draft.formula, input.name, name),
      ...(isFirst && !draft.series ? { anchor: anchorFor(price.lastAssessedAt) } : {}),
    });
  };

  /** The buttons that add an input of a formula. */
  inputButtons() {
    const isFull = this.props.draft.inputs.length >= INPUTS_MAX;
    return html`
      <div class="row">
        ${[
          ['price', 'Add price', { code: '', period: 'M-1' }],
          ['rate', 'Add exchange rate', { rate: '', period: 'M-1' }],
          ['number', 'Add number', { value: '', unit: '', note: '' }],
        ].map(
          ([kind, label, members]) => html`
            <button type="button" disabled=${isFull} onClick=${() => this.add(kind, members)}>${label}</button>
          `,
        )}
      </div>
    `;
  }

  render({ app, view, markets, draft, edit, submit, violations, answer, isBusy }) {
    const { inputs } = draft;
    const receipts = answer?.data[0]?.inputs ?? {};
    const onSubmit = (event) => {
      event.preventDefault();
      submit();
    };
    return html`
      <form class="panel calculation-form" onSubmit=${onSubmit} aria-label="Calculation">
        ${draft.payables !== null && html`<${Later} load=${payablesPart} ...${this.props} receipts=${receipts} />`}
        ${inputs.map(
          (input) => html`
            <${InputPart}
              key=${input.id}
              app=${app}
              view=${view}
              markets=${markets}
              input=${input}
              receipt=${receipts[input.name]}
              violations=${violations.filter(({ pointer }) => `${pointer}/`.startsWith(`/inputs/${input.name}/`))}
              change=${this.replace}
              rename=${(name) => this.rename(input, name)}
              remove=${() => this.change(inputs.filter((each) => each !== input))}
              onPick=${this.pick}
            />
          `,
        )}
        ${draft.payables === null && this.inputButtons()}
        ${draft.payables === null && html`<${FormulaPart} draft=${draft} edit=${edit} violations=${violations} />`}
        <${AnchorPart} draft=${draft} edit=${edit} violations=${violations} />
        <${ResultPart} draft=${draft} edit=${edit} violations=${violations} />
        <datalist id="periods">${EXAMPLES.map((each) => html`<option value=${each}>${periodText(each)}</option>`)}</datalist>
        <div class="row"><button class="main" type="submit" aria-disabled=${isBusy ? 'true' : null}>Calculate</button></div>
      </form>
    `;
  }
}
