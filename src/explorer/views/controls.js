// The controls of a chart: its range, its scale, and the currency and unit of its prices.
import { askJson } from '../api.js';
import { dateOf, dayOf, isDate, monthsFrom, today } from '../dates.js';
import { PERIODS } from '../link.js';
import { Loaded } from '../loaded.js';
import { classes, html } from '../ui.js';

/** Ranges that end at the newest point. */
const PRESETS = [
  ['1M', '1 month', 1],
  ['3M', '3 months', 3],
  ['6M', '6 months', 6],
  ['1Y', '1 year', 12],
  ['3Y', '3 years', 36],
  ['5Y', '5 years', 60],
];

const presetFrom = (newest, months) => dateOf(monthsFrom(dayOf(newest), -months));

/** Presets of the range, and its first and last day. */
const Range = ({ view, newest, change }) => {
  const isOf = (from) => view.from === from && view.to === null;
  const set = (name) => (event) => {
    const { value } = event.target;
    if (value === '' || isDate(value)) change({ [name]: value || null });
  };
  return html`
    <div class="segments" role="group" aria-label="Range">
      ${
        newest !== null &&
        PRESETS.map(([short, name, months]) => {
          const from = presetFrom(newest, months);
          return html`
            <button
              type="button"
              title=${name}
              aria-pressed=${isOf(from) ? 'true' : 'false'}
              onClick=${() => change({ from, to: null })}
            >
              ${short}
            </button>
          `;
        })
      }
      <button
        type="button"
        aria-pressed=${isOf(null) ? 'true' : 'false'}
        onClick=${() => change({ from: null, to: null })}
      >
        All
      </button>
    </div>
    <label class="field">From <input type="date" value=${view.from ?? ''} max=${view.to} onChange=${set('from')} /></label>
    <label class="field">To <input type="date" value=${view.to ?? ''} min=${view.from} onChange=${set('to')} /></label>
  `;
};

const Switch = ({ name, isOn, change }) => html`
  <button type="button" aria-pressed=${isOn ? 'true' : 'false'} onClick=${change}>${name}</button>
`;

const Choice = ({ name, value, none, options, change }) => html`
  <label class="field">
    ${name}${' '}
    <select onChange=${(event) => change(event.target.value || null)}>
      <option value="" selected=${value === null}>${none}</option>
      ${options.map(([each, text]) => html`<option value=${each} selected=${each === value}>${text}</option>`)}
    </select>
  </label>
`;

/** Adds a value of the link that the list lacks. */
const withOwn = (options, value) =>
  value === null || options.some(([each]) => each === value)
    ? options
    : [...options, [value, value]];

/** @param newest the newest date of the prices, or null */
export class Controls extends Loaded {
  /** The lists are the same for every view. */
  keyOf() {
    return '';
  }

  async load(_props, signal) {
    const [currencies, units] = await Promise.all([
      askJson('v3/reference/currencies', signal),
      askJson('v3/reference/units', signal),
    ]);
    return {
      currencies: currencies.data.map(({ iso, name }) => [iso, `${iso}  ${name}`]),
      units: units.data
        .filter(({ dimension }) => dimension !== 'percent')
        .map(({ symbol, name }) => [symbol ?? name, symbol ? `${symbol}  ${name}` : name]),
    };
  }

  render({ view, newest, app }, { data }) {
    const { change } = app;
    const { currencies, units } = data ?? { currencies: [], units: [] };
    return html`
      <div class="controls">
        <div class="row">
          <${Range} view=${view} newest=${newest} change=${change} />
          <div class="segments" role="group" aria-label="Scale">
            <${Switch} name="Index" isOn=${view.index} change=${() => change({ index: !view.index })} />
            <${Switch} name="Log" isOn=${view.log} change=${() => change({ log: !view.log })} />
            <${Switch} name="Band" isOn=${view.bands} change=${() => change({ bands: !view.bands })} />
          </div>
        </div>
        <div class="row">
          <${Choice}
            name="Currency"
            value=${view.currency}
            none="As published"
            options=${withOwn(currencies, view.currency)}
            change=${(currency) => change({ currency })}
          />
          <${Choice}
            name="Unit"
            value=${view.unit}
            none="As published"
            options=${withOwn(units, view.unit)}
            change=${(unit) => change({ unit })}
          />
          <${Choice}
            name="Average"
            value=${view.average}
            none="As published"
            options=${PERIODS.map((each) => [each, `of each ${each}`])}
            change=${(average) => change({ average })}
          />
          <label class=${classes('field', view.asOf && 'past')}>
            As of${' '}
            <input
              type="date"
              max=${today()}
              value=${view.asOf?.slice(0, 10) ?? ''}
              onChange=${({ target: { value } }) => change({ asOf: value || null })}
            />
          </label>
        </div>
      </div>
    `;
  }
}
