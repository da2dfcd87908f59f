// The programs that send a calculation.
import { ROOT } from '../../api.js';
import { calculationRecipes } from '../../take-away/calculation-recipes.js';
import { html } from '../../ui.js';
import { Recipes } from '../programs.js';

export const CalculationPrograms = ({ body }) => {
  const url = new URL('v3/calculations', ROOT).href;
  return html`
    <p class="request"><code>POST ${url}</code></p>
    <${Recipes} recipes=${calculationRecipes(url, body)} />
  `;
};
