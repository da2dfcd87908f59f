// The shown request, and programs that send it.
import { ROOT } from '../api.js';
import { copied } from '../take-away/clipboard.js';
import { fileAddress } from '../take-away/files.js';
import { recipesOf } from '../take-away/recipes.js';
import { Component, html } from '../ui.js';

/** Programs, of which one is shown. @param props `recipes`: `id`, `name` and `text` of each */
export class Recipes extends Component {
  state = { recipe: 'curl', said: '' };

  render({ recipes }, { recipe, said }) {
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
        <span class="quiet" role="status">${said}</span>
        <button type="button" onClick=${async () => this.setState({ said: await copied(text) })}>Copy</button>
      </div>
      <pre tabindex="0" role="region" aria-label="Program text"><code>${text}</code></pre>
    `;
  }
}

export class Programs extends Component {
  state = { market: null };

  render({ answers, entries, form }, { market }) {
    const answer = answers.find((each) => each.market === market) ?? answers[0];
    const records = entries.map(({ record }) => record);
    const urlOf = (address) => new URL(address, ROOT).href;
    const program = urlOf(fileAddress(answer.address, 'program', records));
    return html`
      ${
        answers.length > 1 &&
        html`<label class="field">
          Request of the market${' '}
          <select onChange=${(event) => this.setState({ market: event.target.value })}>
            ${answers.map(
              (each) =>
                html`<option value=${each.market} selected=${each === answer}>${each.market}</option>`,
            )}
          </select>
        </label>`
      }
      <p class="request"><code>GET ${urlOf(fileAddress(answer.address, form, records))}</code></p>
      ${/^(wide|compared)$/.test(form) && html`<p class="quiet small">The programs print a row for each value.</p>`}
      <${Recipes} recipes=${recipesOf(urlOf(answer.address), program)} />
    `;
  }
}
