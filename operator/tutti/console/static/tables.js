// Tables, and what stands there until the answer comes.

import { html, nothing } from './vendor/lit-html.js';
import { draw, fillSoon, state } from './app.js';
import { count, problem } from './text.js';

const FIRST_ROWS = 40; // of a table in the first picture of a view
const MOST_ROWS = 100; // of a table at once; more are a click away

export const loading = (entry) => (entry.problem ? problem(entry.problem.message) : html`<p>Loading …</p>`);

// A table of as many rows as fit a page; the rest comes in steps.
const lengths = {};
export function table(title, columns, rows, cells) {
  const shown = state.isFresh ? FIRST_ROWS : (lengths[title] ?? MOST_ROWS);
  if (state.isFresh && rows.length > FIRST_ROWS) fillSoon();
  return html`<div class="wide" tabindex="0" role="region" aria-label=${title}>
    <table class="cards">
      <thead>
        <tr>
          ${columns.map(([head, kind = '']) => html`<th class=${kind} scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.slice(0, shown).map(
          (row) => html`<tr>
            ${cells(row).map(
              (cell, i) =>
                html`<td class=${columns[i][1] ?? ''} data-title=${columns[i][0]}>
                  <span>${cell}</span>
                </td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
    ${!state.isFresh && rows.length > shown
      ? html`<p>
          ${count(rows.length - shown, 'more row')}.
          <button
            @click=${() => {
              lengths[title] = shown + MOST_ROWS;
              draw();
            }}
          >
            Show ${MOST_ROWS} more
          </button>
        </p>`
      : nothing}
  </div>`;
}
