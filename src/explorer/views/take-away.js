// Downloads: the request as CSV and as programs, and the chart as PNG.

import { ask, ROOT } from '../api.js';
import { clockTime, endOf, minuteOf } from '../dates.js';
import { csvAddress } from '../link.js';
import { counted, hasSampleRates, isSample } from '../texts.js';
import { Component, createRef, html } from '../ui.js';

/** Starts a download. */
function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The file name of a download. */
const fileName = ({ market, codes }, ending) =>
  `${codes.length === 1 ? codes[0].replace(/[^\w.-]+/g, '_').slice(0, 60) : market}.${ending}`;

/** Number of codes on a line of the picture. */
const CODES_A_LINE = 6;

/** The notes below the chart in a PNG: every code, currency and unit, and the source. */
function notesOf({ entries, answers, view }) {
  const records = entries.map(({ record }) => record);
  const codes = records.map(({ code }) => code);
  const lines = [];
  for (let at = 0; at < codes.length; at += CODES_A_LINE) {
    lines.push(codes.slice(at, at + CODES_A_LINE).join(', '));
  }
  const options = [
    view.average && `average of each ${view.average}`,
    view.currency && `in ${view.currency}`,
    view.unit && `per ${view.unit}`,
    view.index && 'as an index, 100 at the first value shown',
    view.asOf && `as it was known at ${minuteOf(endOf(view.asOf))}`,
  ].filter(Boolean);
  if (options.length > 0) lines.push(options.join('; '));
  const samples = records.filter(isSample);
  if (samples.length > 0) {
    const which = samples.length === records.length ? 'the' : `${samples.length} of these`;
    lines.push(`Sample data: ${which} prices are invented for demonstration`);
  }
  if (records.some(hasSampleRates)) lines.push('Sample exchange rates, invented for demonstration');
  const revisions = answers.map(({ $metadata }) => $metadata.revision).join(', ');
  return [...lines, `Commodity Prices Service, ${ROOT.host}, revision ${revisions}`];
}

export class TakeAway extends Component {
  state = { market: null, recipe: 'curl', recipesOf: null, said: '' };
  place = createRef();

  /** The shown request, for the chosen market if there are several. */
  answer() {
    const { answers } = this.props;
    return answers.find(({ market }) => market === this.state.market) ?? answers[0];
  }

  saveCsv = async () => {
    const answer = this.answer();
    this.setState({ said: 'Asking for the file…' });
    try {
      const file = await (await ask(csvAddress(answer.address))).blob();
      save(file, fileName(answer, 'csv'));
      this.setState({ said: `Saved ${file.size} bytes at ${clockTime(new Date())}` });
    } catch (error) {
      this.setState({ said: error.message });
      this.props.app.fail(error);
    }
  };

  savePicture = async () => {
    const { pictureOf } = await import('../picture.js');
    const { chart, entries, answers } = this.props;
    const style = getComputedStyle(this.place.current);
    const read = (name) => style.getPropertyValue(name).trim();
    const theme = { ink: read('--ink'), quiet: read('--quiet'), panel: read('--panel') };
    const names = entries.map(({ record }) => record.name);
    const [first, ...others] = names;
    const title =
      others.length > 0 ? `${first} and ${counted(others.length, 'more price')}` : first;
    const notes = notesOf(this.props);
    save(await pictureOf(chart().plots, { title, notes }, theme), fileName(answers[0], 'png'));
  };

  /** Shows the request as programs, or hides them. */
  toggle = async () => {
    const { recipesOf } = await import('../recipes.js');
    this.setState((state) => ({ recipesOf: state.recipesOf ? null : recipesOf }));
  };

  copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      this.setState({ said: 'Copied' });
    } catch {
      this.setState({ said: 'This browser does not let the page copy; select the text instead' });
    }
  };

  programs(recipes) {
    const { recipe } = this.state;
    const { text } = recipes.find(({ id }) => id === recipe);
    return html`
      <div class="row spread">
        <div class="segments" role="group" aria-label="Program">
          ${recipes.map(
            ({ id, name }) => html`
              <button
                type="button"
                aria-pressed=${id === recipe ? 'true' : 'false'}
                onClick=${() => this.setState({ recipe: id })}
              >
                ${name}
              </button>
            `,
          )}
        </div>
        <button type="button" onClick=${() => this.copy(text)}>Copy</button>
      </div>
      <pre tabindex="0" role="region" aria-label="Program text"><code>${text}</code></pre>
    `;
  }

  render({ answers }, { recipesOf, said }) {
    const answer = this.answer();
    const url = new URL(answer.address, ROOT).href;
    const csv = new URL(csvAddress(answer.address), ROOT).href;
    return html`
      <section class="panel take-away" ref=${this.place} aria-labelledby="take-away">
        <div class="row spread">
          <h2 id="take-away">Take away</h2>
          <div class="row">
            ${
              answers.length > 1 &&
              html`<label class="field">
                Market${' '}
                <select onChange=${(event) => this.setState({ market: event.target.value })}>
                  ${answers.map(
                    ({ market }) =>
                      html`<option value=${market} selected=${market === answer.market}>${market}</option>`,
                  )}
                </select>
              </label>`
            }
            <button type="button" onClick=${this.saveCsv}>CSV</button>
            <button type="button" onClick=${this.savePicture}>PNG of the chart</button>
            <button type="button" aria-expanded=${recipesOf ? 'true' : 'false'} onClick=${this.toggle}>
              Code
            </button>
            <button type="button" onClick=${() => this.copy(location.href)}>Copy link</button>
          </div>
        </div>
        <p class="request"><code>GET ${csv}</code></p>
        ${recipesOf && this.programs(recipesOf(url, csv))}
        <p class="quiet" role="status">${said}</p>
      </section>
    `;
  }
}
