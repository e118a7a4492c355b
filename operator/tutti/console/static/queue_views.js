// Queues: the tree, what is charged of each quota, and the gangs.

import { html, nothing } from './vendor/lit-html.js';
import { need } from './app.js';
import { gangLink, name, problem, visible } from './text.js';
import { table } from './views.js';

const UNITS = { m: 1 / 1000, '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };

// A quantity as a number, near enough for a bar.
function number(quantity = '0') {
  const [, digits, unit] = /^([\d.]+)(m|[KMGTPE]i)?$/.exec(quantity) ?? [null, '0', ''];
  return Number(digits) * UNITS[unit ?? ''];
}

const percent = (n) => `${(100 * Math.min(1, n)).toFixed(1)}%`;

// Up to the limit, or else up to what all nodes have.
function bar(queue, resource, totals) {
  const [charged, covered, guaranteed] = ['charged', 'covered', 'guaranteed'].map((key) =>
    number(queue[key][resource]),
  );
  const whole = Math.max(number(queue.limits[resource] ?? totals[resource]?.allocatable), charged) || 1;
  const words = `${queue.charged[resource] ?? 0} charged, ${queue.covered[resource] ?? 0} covered`;
  return html`<svg class="bar" role="img" aria-label=${words}>
    <rect class="charged" width=${percent(charged / whole)} height="100%"></rect>
    <rect class="covered" width=${percent(covered / whole)} height="100%"></rect>
    <rect
      class="mark"
      x=${percent(guaranteed / whole)}
      width=${guaranteed ? 2 : 0}
      height="100%"
    ></rect>
  </svg>`;
}

function rows(queue, totals) {
  const guaranteed = Object.keys(queue.guaranteed).filter((key) => number(queue.guaranteed[key]));
  const quotas = new Set([...guaranteed, ...Object.keys(queue.limits)]);
  const named = [...quotas].sort();
  return (named.length ? named : ['']).map(
    (resource, i) => html`<tr>
      ${i
        ? html`<td></td>`
        : html`<th scope="row">
            ${Array.from({ length: queue.depth }, () => html`<span class="indent"></span>`)}
            ${name(queue.name)}
          </th>`}
      <td>${name(resource || '–')}</td>
      <td>${resource ? bar(queue, resource, totals) : nothing}</td>
      ${['charged', 'covered', 'guaranteed', 'limits'].map(
        (key) => html`<td class="number">
          ${resource ? queue[key][resource] ?? (key === 'limits' ? '–' : '0') : '–'}
        </td>`,
      )}
      <td class="number">${i ? nothing : queue.waiting}</td>
      <td class="number">${i ? nothing : `${Math.floor(100 * queue.share)} %`}</td>
      <td>${i || !queue.parent ? nothing : visible(queue.state)}</td>
    </tr>`,
  );
}

const COLUMNS = ['Queue', 'Resource', 'Use', 'Charged', 'Covered', 'Guaranteed', 'Limit', 'Waiting', 'Share', 'State'];

export function queues() {
  const entry = need('/api/queues');
  const totals = need('/api/status').value?.resources ?? {};
  if (!entry.value) {
    const words = entry.problem ? problem(entry.problem.message) : html`<p>Loading …</p>`;
    return html`<h1>Queues</h1>${words}`;
  }
  const { queues: all, gangs } = entry.value;
  if (!all.length) {
    return html`<h1>Queues</h1>
      <p>There is no Queue: all gangs share the cluster without quotas.</p>`;
  }
  return html`
    <h1>Queues</h1>
    <p class="quiet">
      A bar ends at the limit, or else at what all nodes have. The dark part is covered by a
      guarantee, and the line is the guarantee of the queue.
    </p>
    <div class="wide">
      <table id="queues">
        <caption>
          Queues, with all below them
        </caption>
        <thead>
          <tr>
            ${COLUMNS.map((title) => html`<th scope="col">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${all.map((queue) => rows(queue, totals))}
        </tbody>
      </table>
    </div>
    ${all.flatMap((queue) =>
      queue.faults.map((fault) => problem(`queue ${queue.name}: ${fault}`)),
    )}
    <h2>Gangs</h2>
    ${table(
      'Gangs of the queues',
      [['Gang'], ['Queue'], ['State'], ['Priority', 'number'], ['Charged']],
      gangs,
      (row) => [
        gangLink(row.kind === 'PodGroup' ? row.gang : `${row.gang}/${row.kind}`),
        name(row.queue),
        Object.keys(row.charged).length ? 'runs' : 'waits',
        row.priority,
        visible(Object.entries(row.charged).map(([key, n]) => `${n} ${key}`).join(', ')),
      ],
    )}
  `;
}
