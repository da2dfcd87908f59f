// The controls of a chart: its range, its scale, and the currency and unit of its prices.
import { askJson } from '../api.js';
import { dateOf, dayOf, isDate, monthsFrom, today } from '../dates.js';
import { addressOf, PERIODS } from '../link.js';
import { Loaded } from '../loaded.js';
import { classes, html } from '../ui.js';

/** Ranges that end at the newest point. */
const PRESETS = [
  ['1M', '1 month', 1],
  ['3M', '3 months', 3],
  ['6M', '6 months', 6],
  ['1Y', '1 year', 12],
  ['2Y', '2 years', 24],
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

const Option = ({ id, text, value }) =>
  html`<option value=${id} selected=${id === value}>${text}</option>`;

/** @param options pairs of a value and its text, or of a group and its options */
const Choice = ({ name, value, none, options, change }) => html`
  <label class="field">
    ${name}${' '}
    <select onChange=${(event) => change(event.target.value || null)}>
      <option value="" selected=${value === null}>${none}</option>
      ${options.map(([each, inside]) =>
        typeof inside === 'string'
          ? html`<${Option} id=${each} text=${inside} value=${value} />`
          : html`<optgroup label=${each}>
              ${inside.map(([id, text]) => html`<${Option} id=${id} text=${text} value=${value} />`)}
            </optgroup>`,
      )}
    </select>
  </label>
`;

/** The settings of a view as text, for the folded controls. */
export function settingsText({ from, to, currency, unit, average, rates, asOf }) {
  const range = from || to ? `${from ?? '…'} to ${to ?? 'now'}` : null;
  const parts = [
    range,
    currency,
    unit && `per ${unit}`,
    average && `${average} averages`,
    rates && 'mean rates',
    asOf && `as of ${asOf.slice(0, 10)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** Comparisons by their part of a link. */
const COMPARISON_TEXTS = [
  ['spread', 'Spread, 1st − 2nd'],
  ['ratio', 'Ratio, 1st ÷ 2nd'],
  ['year', 'Change over a year'],
];

const hasOption = (inside, value) =>
  typeof inside !== 'string' && inside.some(([each]) => each === value);

/** Adds a value of the link that the list lacks. */
const withOwn = (options, value) =>
  value === null || options.some(([each, inside]) => each === value || hasOption(inside, value))
    ? options
    : [...options, [value, value]];

/** Maximum number of prices of a market that are read for its currencies in use. */
const QUOTED_MAX = 1_000;

const quotedAddress = (market) =>
  addressOf(`v3/prices/${encodeURIComponent(market)}`, [
    ['format', 'rows'],
    ['columns', 'currency'],
    ['limit', QUOTED_MAX],
  ]);

/**
 * @param newest the newest date of the prices, or null
 * @param hasMeans true if values of a price are means of a month or year
 * @param hasVat true if a price is known to include VAT
 */
export class Controls extends Loaded {
  /** The markets of the chart: they have the currencies in use. */
  keyOf({ view }) {
    return [...new Set(view.prices.map(({ market }) => market))].sort().join(' ');
  }

  async load(props, signal) {
    const markets = this.keyOf(props).split(' ');
    const [currencies, units, ...quoted] = await Promise.all([
      askJson('v3/reference/currencies', signal),
      askJson('v3/reference/units', signal),
      ...markets.map((market) => askJson(quotedAddress(market), signal)),
    ]);
    const used = new Set(quoted.flat().map(({ currency }) => currency));
    const options = currencies.data.map(({ iso, name }) => [iso, `${iso}  ${name}`]);
    return {
      currencies: [
        ['In use here', options.filter(([iso]) => used.has(iso))],
        ['Others', options.filter(([iso]) => !used.has(iso))],
      ].filter(([, group]) => group.length > 0),
      units: units.data
        .filter(({ dimension }) => dimension !== 'percent')
        .map(({ symbol, name }) => [symbol ?? name, symbol ? `${symbol}  ${name}` : name]),
    };
  }

  render({ view, newest, hasMeans, hasVat, app }, { data }) {
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
          ${
            ((hasMeans && view.currency) || view.rates) &&
            html`<${Choice}
              name="Rates of means"
              value=${view.rates}
              none="Of one day"
              options=${[['period-mean', 'Mean of the period']]}
              change=${(rates) => change({ rates })}
            />`
          }
          ${
            (hasVat || view.vat) &&
            html`<${Switch} name="Without VAT" isOn=${view.vat} change=${() => change({ vat: view.vat ? null : 'exclude' })} />`
          }
          <${Choice}
            name="Compare"
            value=${view.compare}
            none="Prices as they are"
            options=${COMPARISON_TEXTS}
            change=${(compare) => change({ compare })}
          />
          <label class=${classes('field', view.asOf && 'past')}>
            As of${' '}
            <input
              type="date"
              max=${dateOf(dayOf(today()) - 1)}
              value=${view.asOf?.slice(0, 10) ?? ''}
              onChange=${({ target: { value } }) => change({ asOf: value || null })}
            />
          </label>
        </div>
      </div>
    `;
  }
}
