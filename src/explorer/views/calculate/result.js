// The result of a calculation: its status with reasons, and the receipt that it is computed from.
import { askJson } from '../../api.js';
import { addressOf, EMPTY, linkTo } from '../../link.js';
import { Loaded } from '../../loaded.js';
import { Remarks } from '../../notices.js';
import { daysText } from '../../periods.js';
import { counted, isSample, NOTHING } from '../../texts.js';
import { figure, html, ScrollTable } from '../../ui.js';
import { pricesOf } from '../prices-of-codes.js';
import { ResultsChart } from './chart.js';
import { CalculationTakeAway } from './take-away.js';

/** The words of each status. */
const STATUS = {
  final: ['Final', 'every due session is there or named as closed'],
  provisional: ['Provisional', 'a session or rate is not published yet, or a number is missing'],
  unverified: ['Unverified', 'no calendar says on which days a price was due'],
};

const Status = ({ status }) =>
  html`<span class=${`status ${status}`}>${STATUS[status]?.[0] ?? status}</span>`;

const Reasons = ({ reasons }) =>
  reasons.length > 0 &&
  html`<ul>${reasons.map(
    ({ code, input, detail }) => html`<li>${detail}${' '}
    <span class="quiet"><code>${input}</code> <code>${code}</code></span></li>`,
  )}</ul>`;

/** A unit beside a number. That of a plain number is not shown. */
const shownUnit = (unit) => (unit === '1' ? '' : unit);

const Value = ({ result }) =>
  result.value === null
    ? html`<strong>No result</strong>`
    : html`<strong class="big">${figure(result.value)}</strong> ${shownUnit(result.unit)}`;

/** A description list of those members that are there. */
const Facts = ({ rows }) => html`
  <dl class="attributes">
    ${rows
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;

const SESSION_COLUMNS = [
  ['Date', 'date', ({ date }) => html`<span class="day">${date}</span>`],
  ['Published', 'number', ({ published }) => published && figure(published)],
  ['Low', 'number', ({ low }) => low && figure(low)],
  ['High', 'number', ({ high }) => high && figure(high)],
  ['Rate', 'number', ({ fx }) => fx && html`× ${fx.to} ÷ ${fx.from}`],
  ['Rate of', 'date', ({ fx }) => fx && html`<span class="day">${fx.date}</span>`],
  ['VAT', 'number', ({ vat }) => vat],
  ['Substitute for', 'date', ({ substituteFor }) => substituteFor],
];

/** Rows of a table that does not scroll: the sessions of a month. */
const ROWS_MAX = 31;

/** The used sessions of an input, and the days without one, in the order of their days. */
function Sessions({ name, sessions, notUsed }) {
  const columns = SESSION_COLUMNS.filter(
    ([, , of], at) => at < 2 || sessions.some((each) => of(each)),
  );
  const rows = [...sessions, ...notUsed].sort((a, b) => a.date.localeCompare(b.date));
  return html`
    <${ScrollTable}
      name=${`Sessions of ${name}`}
      kind="list sessions stack"
      isTall=${rows.length > ROWS_MAX}
      heads=${[...columns.map(([title, kind]) => [title, kind]), ['Use']]}
    >
      ${rows.map(
        (row) => html`
          <tr key=${`${row.date} ${row.substituteFor}`}>
            ${columns.map(([title, kind, of]) => html`<td class=${kind} data-label=${title}>${of(row) ?? NOTHING}</td>`)}
            <td data-label="Use">${row.why ? html`<span class="old">${row.why}${row.name && `: ${row.name}`}</span>` : row.substituteFor ? 'substitute' : 'used'}</td>
          </tr>
        `,
      )}
    </${ScrollTable}>
  `;
}

const factorText = (factor) => factor && `× ${factor.multiply} ÷ ${factor.divide}`;

/** The days of an input: those of the period, or of its sessions. */
function daysOf({ from, to, sessions }) {
  const first = from ?? sessions?.[0]?.date;
  const last = to ?? sessions?.at(-1)?.date;
  return first && last ? daysText(first, last) : '';
}

/** Other facts of an input that the receipt names and no row below shows, such as a note. */
const Input = ({ name, input }) => {
  const { sessions, notUsed = [] } = input;
  const value =
    input.value === null
      ? 'none'
      : html`<strong>${figure(input.value)}</strong> ${shownUnit(input.unit)}`;
  const isNumber = sessions === undefined;
  const substitutes = sessions?.filter(({ substituteFor }) => substituteFor).length ?? 0;
  const counts = Object.entries(Object.groupBy(notUsed, ({ why }) => why));
  return html`
    <section class="panel" aria-label=${`Input ${name}`}>
      <h2><code>${name}</code> ${value}</h2>
      <${Facts}
        rows=${[
          [
            'Price',
            input.code &&
              html`<a href=${linkTo({ ...EMPTY, code: input.code })}><bdi>${input.name}</bdi></a> <code>${input.code}</code>`,
          ],
          ['Rate', input.rate],
          [
            'Statistic',
            !isNumber &&
              [
                input.statistic ?? 'average',
                input.side && `of the ${input.side}`,
                input.method === 'mid-of-rounded-averages' && input.method,
              ]
                .filter(Boolean)
                .join(' '),
          ],
          ['Period', !isNumber && html`${input.period}: <span class="day">${daysOf(input)}</span>`],
          [
            'Sessions',
            !isNumber &&
              [
                `${input.observations} used`,
                substitutes > 0 && `${counted(substitutes, 'substitute')} among them`,
                ...counts.map(([why, all]) => `${all.length} ${why}`),
              ]
                .filter(Boolean)
                .join(', '),
          ],
          ['Factor', factorText(input.unitFactor)],
          ['Rates of', input.source],
          ['VAT', input.vat],
          ['Exact', input.exact !== input.value && input.exact],
          ['Note', input.note],
        ].map(([title, text]) => [title, text || null])}
      />
      ${sessions?.length + notUsed.length > 0 && html`<${Sessions} name=${name} sessions=${sessions} notUsed=${notUsed} />`}
    </section>
  `;
};

const Steps = ({ steps }) => html`
  <section class="panel flush">
    <h2>Steps</h2>
    <${ScrollTable} name="Steps of the formula" kind="list stack" heads=${[['Operation', 'wide'], ['Exact', 'figure'], ['Unit', 'unit']]}>
      ${steps.map(
        ({ text, exact, unit }) => html`
          <tr key=${text}>
            <th scope="row" class="wide"><code>${text}</code></th>
            <td class="figure exact">${figure(exact)}</td>
            <td class="unit">${shownUnit(unit)}</td>
          </tr>
        `,
      )}
    </${ScrollTable}>
  </section>
`;

/** The results of a series, each of which shows its receipt. */
const Anchors = ({ results, at, choose }) => html`
  <${ScrollTable}
    name="Results by anchor"
    kind="list stack"
    isTall=${true}
    heads=${[['Anchor'], ['Result', 'number'], ['Unit', 'unit'], ['Status'], ['Receipt']]}
  >
    ${results.map(
      (each, place) => html`
        <tr key=${each.anchor} class=${place === at ? 'chosen' : ''}>
          <th scope="row"><span class="day">${each.anchor}</span></th>
          <td class="number strong">${each.value === null ? NOTHING : figure(each.value)}</td>
          <td class="unit">${shownUnit(each.unit)}</td>
          <td><${Status} status=${each.status} /></td>
          <td><button type="button" aria-pressed=${place === at ? 'true' : 'false'} aria-label=${`Show ${each.anchor}`} onClick=${() => choose(place)}>Show</button></td>
        </tr>
      `,
    )}
  </${ScrollTable}>
`;

/** The place of the chosen anchor: the last one without a choice. */
const placeOf = ({ data }, at) => (at !== null && at < data.length ? at : data.length - 1);

/**
 * Says that a result is computed from sample prices. A price stays one when published points follow
 * the invented ones, so the records decide. @param props `app`, and the `codes` of the inputs
 */
class SampleNote extends Loaded {
  keyOf({ codes }) {
    return codes.join(' ');
  }

  async load({ codes }, signal) {
    const prices = await pricesOf(codes, signal);
    const answers = await Promise.all(
      prices.map(({ market, code }) =>
        askJson(addressOf(`v3/prices/${market}`, [['codes', code]]), signal),
      ),
    );
    return answers.flatMap(({ data }) => data.filter(isSample).map(({ code }) => code));
  }

  render(_props, { data }) {
    return (
      data?.length > 0 &&
      html`<p class="note">
        <strong>Sample data:</strong> ${data.join(', ')}, invented for demonstration.
      </p>`
    );
  }
}

/** The codes of the prices that a result is computed from. */
const codesOf = ({ inputs = {} }) => Object.values(inputs).flatMap(({ code }) => code ?? []);

/**
 * The result with its status.
 * @param props `app`; `answer`: `body`, `$metadata` and `data` with exact numbers; `at`, the chosen anchor
 */
export const ResultHead = ({ app, answer, at }) => {
  const { $metadata, data } = answer;
  const result = data[placeOf(answer, at)];
  const [, meaning] = STATUS[result.status] ?? [];
  return html`
    <section class="panel result">
      <h2 class="hidden">Result</h2>
      <p role="status">
        <${Value} result=${result} />${' '}
        <${Status} status=${result.status} />${meaning && html`<span class="quiet">: ${meaning}</span>`}
        ${data.length > 1 && html`<span class="quiet"> (of ${result.anchor})</span>`}
      </p>
      <${Reasons} reasons=${result.reasons} />
      <${SampleNote} app=${app} codes=${codesOf(result)} />
      <${Remarks} warnings=${$metadata.warnings} />
    </section>
  `;
};

/** The receipt of the result, and what a reader takes along. */
export const ResultBody = ({ app, answer, at, choose }) => {
  const { $metadata, data, body } = answer;
  const place = placeOf(answer, at);
  const result = data[place];
  const isSeries = data.length > 1;
  return html`
      ${
        isSeries &&
        html`
          <section class="panel flush">
            <h2>Results by anchor</h2>
            <${ResultsChart} results=${data} />
            <${Anchors} results=${data} at=${place} choose=${choose} />
          </section>
        `
      }
      <${CalculationTakeAway} app=${app} body=${body} answer=${answer} />
      ${Object.entries(result.inputs ?? {}).map(
        ([name, input]) => html`<${Input} key=${name} name=${name} input=${input} />`,
      )}
      ${result.steps?.length > 0 && html`<${Steps} steps=${result.steps} />`}
      <section class="panel">
        <h2>Figure</h2>
        <${Facts}
          rows=${[
            ['Counted from', result.anchor],
            ['Formula', html`<code>${result.formula}</code>`],
            ['Exact', result.exact !== result.value && result.exact],
            ['Rounding', result.rounding],
            ['Revision', html`<code>${$metadata.revision}</code>`],
          ].map(([name, value]) => [name, value || null])}
        />
      </section>
    `;
};
