// The buttons for the files, programs, link and citation of a chart. Their code is loaded when one
// of them is chosen.
import { darkSetting, html, Later, Tasks } from '../ui.js';

/** The forms of a file, with their names. */
const FORMS = [
  ['whole', 'Columns that differ'],
  ['short', 'Short'],
  ['wide', 'Wide: a column for each price'],
];

const programs = async () => (await import('./programs.js')).Programs;

/** @param props `answers`, `entries`, `comparing`, `view`, `warnings`, `picture`: see `saveCsv` */
export class TakeAway extends Tasks {
  state = { form: null, hasPrograms: false, said: '' };

  /** Runs a task that gets the module of downloads. */
  download = (begins, task) =>
    this.act(begins, async () => task(await import('../take-away/downloads.js')));

  /** The forms of a file: the first one is that of a chart with a comparison. */
  forms() {
    const { comparing, entries, view } = this.props;
    return [...(comparing?.formsOf(entries, view.compare) ?? []), ...FORMS];
  }

  /** The chosen form, or the first one. */
  form() {
    const ids = this.forms().map(([id]) => id);
    return ids.includes(this.state.form) ? this.state.form : ids[0];
  }

  saveCsv = (kind) =>
    this.download('Asking for the file…', ({ saveCsv }) => saveCsv(this.props, this.form(), kind));

  saveWorkbooks = () =>
    this.download('Asking for the file…', ({ saveWorkbooks }) =>
      saveWorkbooks(this.props, this.form()),
    );

  savePicture = (isDark) =>
    this.download('Drawing…', ({ savePicture }) => savePicture(this.props, isDark));

  /** Copies the text of `textOf(downloads)`. */
  copy = (textOf) =>
    this.download('', async (downloads) => {
      const { copied } = await import('../take-away/clipboard.js');
      return copied(textOf(downloads));
    });

  render(props, { hasPrograms, said }) {
    const form = this.form();
    const isCompared = form === 'compared';
    return html`
      <section class="panel take-away" aria-labelledby="take-away">
        <div class="row spread">
          <h2 id="take-away">Take away</h2>
          <div class="row">
            <label class="field">
              Columns${' '}
              <select onChange=${(event) => this.setState({ form: event.target.value })}>
                ${this.forms().map(([id, name]) => html`<option value=${id} selected=${id === form}>${name}</option>`)}
              </select>
            </label>
            ${!isCompared && html`<button type="button" onClick=${this.saveWorkbooks}>Excel</button>`}
            <button type="button" onClick=${() => this.saveCsv('csv')}>CSV</button>
            <button type="button" title="Decimal commas, for Excel in most of Europe" onClick=${() => this.saveCsv('semicolon')}>CSV with semicolons</button>
            <button type="button" onClick=${() => this.savePicture(false)}>PNG of the chart</button>
            ${
              darkSetting.matches &&
              html`<button type="button" onClick=${() => this.savePicture(true)}>PNG, dark</button>`
            }
            ${this.codeButton()}
            <button type="button" onClick=${() => this.copy(() => location.href)}>Copy link</button>
            <button type="button" onClick=${() => this.copy(({ citations }) => citations(props))}>Copy citation</button>
          </div>
        </div>
        <p class="quiet small">${isCompared ? props.comparing.NO_WORKBOOK : props.answers.length > 1 && 'Excel gets a workbook for each market; a CSV has all prices in one file.'}</p>
        ${hasPrograms && html`<${Later} load=${programs} ...${props} form=${form} />`}
        <p class="quiet" role="status">${said}</p>
      </section>
    `;
  }
}
