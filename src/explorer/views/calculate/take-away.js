// The file, picture, programs and links of a calculation. Their code is loaded when one is chosen.
import { html, Later, Tasks } from '../../ui.js';

const programs = async () => (await import('./programs.js')).CalculationPrograms;

/** @param props `body` of the request, and `answer` */
export class CalculationTakeAway extends Tasks {
  state = { hasPrograms: false, said: '' };

  save = (kind) =>
    this.act('Asking for the file…', async () =>
      (await import('../../take-away/calculation-files.js'))[kind](this.props),
    );

  copy = (text) =>
    this.act('', async () => (await import('../../take-away/clipboard.js')).copied(text));

  /** The link to the figures at this revision, which no later correction changes. */
  fixedLink() {
    const { body, answer } = this.props;
    const options = { ...body.options, revision: answer.$metadata.revision };
    delete options.asOf;
    const address = new URL(location.href);
    const parts = new URLSearchParams({ calculate: JSON.stringify({ ...body, options }) });
    address.hash = `#${parts}`;
    return address.href;
  }

  render({ app, body, answer }, { hasPrograms, said }) {
    return html`
      <section class="panel take-away" aria-labelledby="take-away">
        <div class="row spread">
          <h2 id="take-away">Take away</h2>
          <div class="row">
            <button type="button" onClick=${() => this.save('saveCsv')}>CSV</button>
            ${answer.data.length > 1 && html`<button type="button" onClick=${() => this.save('savePicture')}>PNG of the chart</button>`}
            ${this.codeButton()}
            <button type="button" onClick=${() => this.copy(location.href)}>Copy link</button>
            <button
              type="button"
              title="The same figures, also after later corrections"
              onClick=${() => this.copy(this.fixedLink())}
            >
              Copy link to these figures
            </button>
          </div>
        </div>
        ${hasPrograms && html`<${Later} load=${programs} app=${app} body=${body} />`}
        <p class="quiet" role="status">${said}</p>
      </section>
    `;
  }
}
