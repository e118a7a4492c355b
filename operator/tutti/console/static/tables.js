// Tables, and what stands there until the answer comes.

import { html, nothing } from './vendor/lit-html.js';
import { draw, fillSoon, go, state } from './app.js';
import { compareNames, count, problem, visible } from './text.js';

const FIRST_ROWS = 40; // of a table in the first picture of a view
const MOST_ROWS = 100; // of a table at once; more are a click away

export const loading = (entry) => (entry.problem ? problem(entry.problem.message) : html`<p>Loading …</p>`);

// How the address sorts a table: -Title:Column sorts from the largest.
function orderOf(title, columns) {
  const [, minus, of, by] = /^(-?)(.*):([^:]*)$/s.exec(state.query.get('sort') ?? '') ?? [];
  const column = of === title && columns.find(([head, , value]) => value && head === by);
  return column ? { head: by, value: column[2], isDown: Boolean(minus) } : null;
}

const isNone = (value) => value === null || value === undefined || value === '';

// Values that are not there come last in both directions.
function compare(a, b, isDown) {
  if (isNone(a) || isNone(b)) return isNone(a) - isNone(b);
  const way = typeof a === 'number' ? a - b : compareNames(String(a), String(b));
  return isDown ? -way : way;
}

function inOrder(rows, order) {
  if (!order) return rows;
  return rows
    .map((row) => [order.value(row), row])
    .sort(([a], [b]) => compare(a, b, order.isDown))
    .map(([, row]) => row);
}

const sortBy = (title, head, isDown) =>
  go({ sort: head && `${isDown ? '-' : ''}${title}:${head}` }, { replace: true });

// Sorts from one end, then from the other, then not at all.
function headCell(title, [head, kind = '', value], order) {
  const own = order?.head === head ? order : null;
  const isNumber = kind.includes('number');
  const press = () =>
    own && own.isDown !== isNumber ? sortBy(title, '') : sortBy(title, head, own ? !own.isDown : isNumber);
  const direction = own ? (own.isDown ? 'descending' : 'ascending') : 'none';
  if (!value) return html`<th class=${kind} scope="col">${head}</th>`;
  return html`<th class=${kind} scope="col" aria-sort=${direction}>
    <button class="sort" title=${`Sort by ${head}`} @click=${press}>${head}</button>
  </th>`;
}

// On a narrow page, rows are cards and have no heads to click.
function sortList(title, columns, order) {
  const choices = columns
    .filter(([, , value]) => value)
    .flatMap(([head]) => [[head, false], [head, true]]);
  if (!choices.length) return nothing;
  const change = (event) => {
    const [head, isDown] = choices[event.target.value] ?? [''];
    sortBy(title, head, isDown);
  };
  return html`<label class="narrow"
    >Sort by
    <select @change=${change}>
      <option value="-1">as listed</option>
      ${choices.map(
        ([head, isDown], i) =>
          html`<option value=${i} ?selected=${order?.head === head && order.isDown === isDown}>
            ${head}, ${isDown ? 'largest first' : 'smallest first'}
          </option>`,
      )}
    </select></label
  >`;
}

// A table of as many rows as fit a page; the rest comes in steps. A column is its head, its kind
// (number, head, action), and what rows are sorted by.
const lengths = {};
export function table(title, columns, rows, cells) {
  const shown = state.isFresh ? FIRST_ROWS : (lengths[title] ?? MOST_ROWS);
  if (state.isFresh && rows.length > FIRST_ROWS) fillSoon();
  const order = orderOf(title, columns);
  const isLong = rows.length > 1;
  return html`<div class="wide" tabindex="0" role="region" aria-label=${title}>
    ${isLong ? sortList(title, columns, order) : nothing}
    <table class="cards">
      <thead>
        <tr>
          ${columns.map((column) => headCell(title, isLong ? column : column.slice(0, 2), order))}
        </tr>
      </thead>
      <tbody>
        ${inOrder(rows, order).slice(0, shown).map(
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

// A field that keeps the rows that have its letters; the address holds them.
export const find = (title, hint = '') => html`<label
  >${title}
  <input
    type="search"
    id="find"
    placeholder=${hint}
    .value=${state.query.get('find') ?? ''}
    @input=${(event) => go({ find: event.target.value }, { replace: true })}
/></label>`;

// Whether one of the texts has the letters of the field, in upper or lower case.
export function finder() {
  const letters = (state.query.get('find') ?? '').toLowerCase();
  return letters ? (...texts) => texts.some((text) => text?.toLowerCase().includes(letters)) : null;
}

export const noneFound = (what) => html`<p>
  No ${what} has the letters “${visible(state.query.get('find'))}”.
  <button @click=${() => go({ find: '' }, { replace: true })}>Show all</button>
</p>`;
