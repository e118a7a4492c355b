// The view of the map: what it shows and how, its legend, and one node.

import { html, nothing } from './vendor/lit-html.js';
import { fillSoon, go, need, state } from './app.js';
import { freeOf, grouped, groupOf, mapOf, rowName, STATUS_WORDS } from './map.js';
import { Newest } from './newest.js';
import { find, finder, loading, noneFound, table } from './tables.js';
import {
  amount, colour, colourOfQueue, copy, count, gangLink, isDark, name, nameOf, nodeLink,
  number, numberOf, rounded, sorterByName, visible,
} from './text.js';

const MOST_IN_LEGEND = 12;
const REST_OF_QUEUES = 10_000; // milliseconds: gangs change their queues seldom
const MANY_NODES = 2000; // whose room is summed up at most once in REST_OF_ROOM
const REST_OF_ROOM = 5000; // milliseconds
const BASIC = ['cpu', 'memory']; // resources that every cluster shows; devices come before them

// Groups stay the same arrays while no node comes, goes or moves to another group: then the map
// draws the tiles alone whose rows are new.
const groups = new Map();
export const nodes = new Newest('/api/map', rowName, (answer, rows) => {
  if (answer.whole || answer.gone.length) groups.clear();
  const labels = nodes.answer?.labels ?? [];
  for (const row of answer.rows) {
    const before = rows.get(rowName(row));
    for (const [by, found] of groups) {
      const place = (one, titles) => groupOf(one, by, titles, queues);
      if (before && place(before, labels) === place(row, answer.labels)) {
        found.place(row);
      } else groups.delete(by);
    }
  }
});

// The queue of each gang: the same Map until a gang has another.
let queues = new Map();
export function queuesOfGangs() {
  const answer = need('/api/queues', {}, Math.floor(Date.now() / REST_OF_QUEUES)).value?.answer;
  const rows = answer?.queues.length ? answer.gangs : [];
  const isKnown = rows.every((row) => queues.get(nameOf(row)) === row.queue);
  if (!isKnown || rows.length !== queues.size) {
    queues = new Map(rows.map((row) => [nameOf(row), row.queue]));
    groups.delete('queue');
  }
  return queues;
}

// Of rows that never change, as those of a plan are.
const ofPlans = new WeakMap();
function groupsOfPlan(all, by, labels) {
  const found = ofPlans.get(all);
  if (found?.by === by && found.queues === queues) return found.groups;
  const { groups: made } = grouped(all, by, labels, queues);
  ofPlans.set(all, { by, queues, groups: made });
  return made;
}

function groupsOf(all, by, labels) {
  if (all !== nodes.all) return groupsOfPlan(all, by, labels);
  let found = groups.get(by);
  if (!found) groups.set(by, (found = grouped(all, by, labels, queues)));
  return found.groups;
}

const openNode = (node) => go({ node }, { focus: '#node' });

export function map() {
  const { all, answer } = nodes.ask();
  if (!answer) return html`<h1>Cluster map</h1>${loading(nodes)}`;
  const { labels } = answer;
  const query = state.query;
  const chosen = query.get('node');
  const rows = foundNodes(all);
  return html`
    <h1>Cluster map</h1>
    ${room(all.length)} ${tools(labels, query)}
    ${rows === all ? nothing : html`<p role="status">${number(rows.length)} of ${count(all.length, 'node')}</p>`}
    ${legend(rows, query)}
    <div>
      ${all.length && !rows.length
        ? noneFound('node and no gang on a node')
        : query.get('as') === 'table'
          ? nodeTable(rows)
          : drawing('map', rows, labels, query, openNode)}
      ${chosen ? nodePanel(chosen) : nothing}
    </div>
  `;
}

// The nodes whose name, or a gang on them, has the letters of Find: the same array while neither
// nodes nor letters change.
const search = { of: null, letters: null, rows: [] };
function foundNodes(all) {
  const has = finder();
  if (!has) return all;
  const letters = state.query.get('find');
  if (search.of !== all || search.letters !== letters) {
    const rows = all.filter((row) => has(rowName(row), ...row[7].map(([gang]) => gang)));
    Object.assign(search, { of: all, letters, rows });
  }
  return search.rows;
}

// The room of the whole cluster, as `tutti status` prints it; the first picture does not wait for it.
function room(nodeCount) {
  if (state.isFresh) fillSoon();
  const bucket = Math.floor(Date.now() / REST_OF_ROOM);
  const version = nodeCount > MANY_NODES ? bucket : state.news.version;
  const value = state.isFresh ? state.data['/api/room?']?.value : need('/api/room', {}, version).value;
  if (!value) return html`<ul class="room" aria-label="Room"></ul>`;
  const all = Object.keys(value.resources).filter((key) => numberOf(value.resources[key].allocatable));
  const devices = all.filter((key) => key.includes('/'));
  const shown = [...devices, ...BASIC.filter((key) => all.includes(key))];
  return html`<ul class="room" aria-label="Room">
    <li><b>${number(value.nodes)}</b> ${value.nodes === 1 ? 'node' : 'nodes'}</li>
    ${shown.map((key) => meter(key, value.resources[key]))}
  </ul>`;
}

function meter(key, { allocatable, allocated, reserved, free, stranded }) {
  const part = (amountOf) => ({ width: (100 * numberOf(amountOf)) / numberOf(allocatable) });
  const parts = [['bound', part(allocated)], ['reserved', part(reserved)]];
  const words = [
    `${rounded(allocatable)} in all`, `${rounded(allocated)} allocated`, `${rounded(reserved)} reserved`,
    `${rounded(free)} free`, `${rounded(stranded)} of it stranded: no pod can use it`,
  ].join(', ');
  return html`<li title=${words}>
    <span class="resource">${name(key)}</span>
    <span class="track" aria-hidden="true">
      ${parts.map(([kind, { width }]) => html`<span class=${kind} .style=${`width: ${Math.min(100, width).toFixed(1)}%`}></span>`)}
    </span>
    <span><b>${rounded(free)}</b> of ${rounded(allocatable)} free</span>
    ${numberOf(stranded) ? html`<span class="quiet">${rounded(stranded)} stranded</span>` : nothing}
  </li>`;
}

// The map of some rows; ``which`` tells maps apart that are shown beside each other.
export function drawing(which, all, labels, query, choose) {
  if (!all.length) return html`<p>There is no node to show.</p>`;
  const by = query.get('by') ?? 'kind';
  const shade = query.get('colour') ?? 'gang';
  if (by === 'queue' || shade === 'queue') queuesOfGangs();
  return mapOf(
    which,
    {
      groups: groupsOf(all, by, labels),
      colour: shade,
      queues: by === 'queue' || shade === 'queue' ? queues : null,
      gang: query.get('gang'),
      node: query.get('node'),
    },
    choose,
  );
}

function tools(labels, query) {
  const select = (title, key, options) => html`<label
    >${title}
    <select id=${key} @change=${(event) => go({ [key]: event.target.value }, { replace: true })}>
      ${options.map(
        ([value, text]) =>
          html`<option value=${value} ?selected=${(query.get(key) ?? options[0][0]) === value}>
            ${text}
          </option>`,
      )}
    </select></label
  >`;
  return html`<div class="tools">
    ${select('Group nodes by', 'by', [
      ['kind', 'kind'],
      ['queue', 'queue'],
      ...labels.map((label) => [label, visible(label)]),
    ])}
    ${select('Colour by', 'colour', [['gang', 'gang'], ['queue', 'queue'], ['use', 'use']])}
    ${select('Show as', 'as', [['map', 'map'], ['table', 'table']])} ${find('Find', 'node or gang')}
  </div>`;
}

const CHIPS = [
  ['free', 'free'],
  ['others', 'other pods'],
  ['bound', 'bound'],
  ['reserved', 'reserved'],
];

const shares = new WeakMap(); // by rows: whether gangs on them end so that others start
function hasEnds(all) {
  if (!shares.has(all)) {
    shares.set(all, all.some((row) => row[7].some(([, status]) => status === 'ending' || status === 'claimed')));
  }
  return shares.get(all);
}

const largestOf = new WeakMap(); // by rows: the gangs on them, the largest first
function largestGangs(all) {
  if (largestOf.has(all)) return largestOf.get(all);
  const members = new Map();
  for (const row of all) {
    for (const [gang, , , n] of row[7]) members.set(gang, (members.get(gang) ?? 0) + n);
  }
  const found = [...members].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  largestOf.set(all, found);
  return found;
}

export function legend(all, query, more = []) {
  const by = query.get('colour') ?? 'gang';
  const promised = more.length ? 'reserved, or would start' : 'reserved';
  const chips = by === 'use' ? [...CHIPS, ...more] : [...CHIPS.slice(0, 2), ['pale', promised]];
  return html`<ul class="legend" aria-label="Legend">
    ${chips.map(
      ([which, title]) => html`<li><span class=${`chip ${which}`}></span>${title}</li>`,
    )}
    ${all.some((row) => row[3])
      ? html`<li><span class="chip flagged"></span>cordoned or not ready</li>`
      : nothing}
    ${hasEnds(all)
      ? html`<li><span class="chip ends"></span>the upper half ends, then the lower half starts</li>`
      : nothing}
    ${by === 'gang' ? gangLegend(all, query) : by === 'queue' ? queueLegend(all) : nothing}
  </ul>`;
}

const chip = (background) => html`<span class="chip" .style=${`background: ${background}`}></span>`;

function gangLegend(all, query) {
  const largest = largestGangs(all);
  const stressed = query.get('gang');
  return html`${largest.slice(0, MOST_IN_LEGEND).map(
      ([gang, n]) =>
        html`<li>
          ${chip(colour(gang, isDark()))}
          <button
            aria-pressed=${stressed === gang}
            @click=${() => go({ gang: stressed === gang ? '' : gang }, { replace: true })}
          >
            ${name(gang)} (${n})
          </button>
        </li>`,
    )}
    ${largest.length > MOST_IN_LEGEND
      ? html`<li class="quiet">and ${count(largest.length - MOST_IN_LEGEND, 'more gang')}</li>`
      : nothing}`;
}

function queueLegend(all) {
  queuesOfGangs();
  const members = new Map();
  for (const [gang, n] of largestGangs(all)) {
    const queue = queues.get(gang);
    if (queue) members.set(queue, (members.get(queue) ?? 0) + n);
  }
  const largest = [...members].sort((a, b) => b[1] - a[1]);
  if (!largest.length) return html`<li class="quiet">no gang here is in a queue</li>`;
  return html`${largest.slice(0, MOST_IN_LEGEND).map(
      ([queue, n]) => html`<li>${chip(colourOfQueue(queue, isDark()))}${name(queue)} (${n})</li>`,
    )}
    ${largest.length > MOST_IN_LEGEND
      ? html`<li class="quiet">and ${count(largest.length - MOST_IN_LEGEND, 'more queue')}</li>`
      : nothing}`;
}

function nodeTable(all) {
  const stateOf = (row) => (row[3] === 'notready' ? 'not ready' : row[3] || 'ready');
  return table(
    'Nodes',
    [
      ['Node', 'head', (row) => row[0]], ['Kind', '', (row) => row[1]], ['State', '', stateOf],
      ['Free', 'number', freeOf], ['Of', 'number', (row) => row[5]], ['Gangs', '', (row) => row[7].length],
    ],
    byName(all),
    (row) => [
      nodeLink(row[0]),
      name(row[1] || '–'),
      stateOf(row),
      amount(row[4], freeOf(row)),
      amount(row[4], row[5]),
      row[7].length ? row[7].map(([gang, status, , n]) => html`${gangLink(gang)} (${n} ${status}) `) : '–',
    ],
  );
}

const sortNodes = sorterByName(rowName);
const named = new WeakMap(); // rows by their names, by the rows as they were answered
function byName(all) {
  if (!named.has(all)) named.set(all, sortNodes(all));
  return named.get(all);
}

// One element, before and after the answer is here, so that it keeps the focus.
function nodePanel(chosen) {
  const entry = need('/api/node', { name: chosen });
  return html`<aside
    class="panel node"
    aria-label="Node"
    id="node"
    tabindex="-1"
    @keydown=${(event) => event.key === 'Escape' && closeNode()}
  >
    ${entry.value && !entry.problem ? nodeFacts(entry.value) : loading(entry)}
    <button @click=${closeNode}>Close</button>
  </aside>`;
}

const closeNode = () => go({ node: '' }, { focus: '.marks' });

function nodeFacts(node) {
  return html`
    <h2>${name(node.name)} ${copy(node.name)}</h2>
    <p>
      ${node.ready ? 'Ready' : 'Not ready'}${node.cordoned ? ', cordoned' : ''}.
      <a href=${`#/what-if?remove=${encodeURIComponent(node.name)}`}>What if it were drained?</a>
    </p>
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th scope="col">Resource</th>
            <th scope="col" class="number">Free</th>
            <th scope="col" class="number">Of</th>
          </tr>
        </thead>
        <tbody>
          ${node.resources.map(
            (one) => html`<tr>
              <td>${name(one.name)}</td>
              <td class="number">${rounded(one.free)}</td>
              <td class="number">${rounded(one.allocatable)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <h2>Gangs here</h2>
    ${node.gangs.length
      ? html`<ul>
          ${node.gangs.map(
            (one) =>
              html`<li>${gangLink(one.gang)}: ${count(one.members, 'member')}, ${STATUS_WORDS[one.status]}</li>`,
          )}
        </ul>`
      : html`<p>None.</p>`}
    ${node.taints.length
      ? html`<h2>Taints</h2>
          <ul>
            ${node.taints.map((taint) => html`<li>${name(taint)}</li>`)}
          </ul>`
      : nothing}
    <details>
      <summary>${count(Object.keys(node.labels).length, 'label')}</summary>
      <ul>
        ${Object.entries(node.labels).map(([key, value]) => html`<li>${name(`${key}=${value}`)}</li>`)}
      </ul>
    </details>
  `;
}
