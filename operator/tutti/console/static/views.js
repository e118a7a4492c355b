// What is: the map, the gangs that wait, one gang.

import { html, nothing } from './vendor/lit-html.js';
import { draw, fillSoon, go, need, state } from './app.js';
import { explain, get } from './server.js';
import { freeOf, grouped, groupOf, mapOf, rowName } from './map.js';
import {
  age, amount, colour, count, gangLink, isDark, moment, name, nodeLink, problem, visible,
} from './text.js';

const FIRST_ROWS = 40; // of a table in the first picture of a view
const MOST_ROWS = 200; // of a table at once; more are a click away
const MOST_IN_LEGEND = 12;
const RESTS = 3; // times as long as an answer took, before the next question

const loading = (entry) => (entry.problem ? problem(entry.problem.message) : html`<p>Loading …</p>`);

// Rows come as what changed since the last answer. Groups stay the same arrays while no node comes,
// goes or moves to another group: then the map draws the tiles alone whose rows are new.
const known = { version: 0, rows: new Map(), labels: [], all: [], groups: new Map() };
let asking = false;
let seen = 0;
let pause = 0; // until when the answer before has to do, so that asking never takes most of the time
function mapRows() {
  const wait = pause - performance.now();
  if (wait > 0) setTimeout(draw, wait);
  else if (!asking && seen !== state.news.version) {
    asking = true;
    const begin = performance.now();
    const version = state.news.version;
    get('/api/map', { since: known.version })
      .then((news) => {
        take(news);
        seen = version;
      })
      .catch(() => {})
      .finally(() => {
        asking = false;
        pause = performance.now() + RESTS * (performance.now() - begin);
        draw();
      });
  }
  return known;
}

function take(news) {
  if (news.whole) known.rows = new Map();
  if (news.whole || news.gone.length) known.groups = new Map();
  for (const gone of news.gone) known.rows.delete(gone);
  for (const row of news.nodes) {
    const before = known.rows.get(rowName(row));
    known.rows.set(rowName(row), row);
    for (const [by, found] of known.groups) {
      if (before && groupOf(before, by, known.labels) === groupOf(row, by, news.labels)) {
        found.place(row);
      } else known.groups.delete(by);
    }
  }
  known.version = news.version;
  known.labels = news.labels;
  known.all = [...known.rows.values()];
}

// Of rows that never change, as those of a plan are.
const ofPlans = new WeakMap();
function groupsOfPlan(all, by, labels) {
  const found = ofPlans.get(all);
  if (found?.by === by) return found.groups;
  const { groups } = grouped(all, by, labels);
  ofPlans.set(all, { by, groups });
  return groups;
}

function groupsOf(all, by, labels) {
  if (all !== known.all) return groupsOfPlan(all, by, labels);
  let found = known.groups.get(by);
  if (!found) known.groups.set(by, (found = grouped(all, by, labels)));
  return found.groups;
}

const openNode = (node) => go({ node }, { focus: '#node' });

export function map() {
  const { all, labels } = mapRows();
  const query = state.query;
  const chosen = query.get('node');
  return html`
    <h1>Cluster map</h1>
    ${tools(labels, query)} ${legend(all, query)}
    <div>
      ${query.get('as') === 'table' ? nodeTable(all) : drawing('map', all, labels, query, openNode)}
      ${chosen ? nodePanel(chosen) : nothing}
    </div>
  `;
}

// The map of some rows; ``which`` tells maps apart that are shown beside each other.
export function drawing(which, all, labels, query, choose) {
  if (!all.length) return html`<p>There is no node to show.</p>`;
  return mapOf(
    which,
    {
      groups: groupsOf(all, query.get('by') ?? 'kind', labels),
      colour: query.get('colour') ?? 'gang',
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
      ...labels.map((label) => [label, visible(label)]),
    ])}
    ${select('Colour by', 'colour', [['gang', 'gang'], ['use', 'use']])}
    ${select('Show as', 'as', [['map', 'map'], ['table', 'table']])}
  </div>`;
}

const CHIPS = [
  ['free', 'free'],
  ['others', 'other pods'],
  ['bound', 'bound'],
  ['reserved', 'reserved'],
];

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
  const largest = largestGangs(all);
  const dark = isDark();
  const stressed = query.get('gang');
  const isByUse = query.get('colour') === 'use';
  const chips = isByUse
    ? [...CHIPS, ...more]
    : [...CHIPS.slice(0, 2), ['pale', more.length ? 'reserved, or would start' : 'reserved']];
  return html`<ul class="legend" aria-label="Legend">
    ${chips.map(
      ([which, title]) => html`<li><span class=${`chip ${which}`}></span>${title}</li>`,
    )}
    ${isByUse
      ? nothing
      : largest.slice(0, MOST_IN_LEGEND).map(
          ([gang, n]) =>
            html`<li>
              <span class="chip" .style=${`background: ${colour(gang, dark)}`}></span>
              <button
                aria-pressed=${stressed === gang}
                @click=${() => go({ gang: stressed === gang ? '' : gang }, { replace: true })}
              >
                ${name(gang)} (${n})
              </button>
            </li>`,
        )}
    ${!isByUse && largest.length > MOST_IN_LEGEND
      ? html`<li class="quiet">and ${count(largest.length - MOST_IN_LEGEND, 'more gang')}</li>`
      : nothing}
  </ul>`;
}

function nodeTable(all) {
  const rows = [...all].sort((a, b) => (a[0] < b[0] ? -1 : 1));
  return table(
    'Nodes',
    [['Node'], ['Kind'], ['State'], ['Free', 'number'], ['Of', 'number'], ['Gangs']],
    rows,
    (row) => [
      nodeLink(row[0]),
      name(row[1] || '–'),
      row[3] === 'notready' ? 'not ready' : row[3] || 'ready',
      amount(row[4], freeOf(row)),
      amount(row[4], row[5]),
      row[7].map(([gang, status, , n]) => html`${gangLink(gang)} (${n} ${status}) `),
    ],
  );
}

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
    <h2>${name(node.name)}</h2>
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
              <td class="number">${one.free}</td>
              <td class="number">${one.allocatable}</td>
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
              html`<li>${gangLink(one.gang)}: ${count(one.members, 'member')} ${one.status}</li>`,
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

const badge = (word) => html`<span class=${`badge ${word}`}>${word}</span>`;

export function waiting() {
  const entry = need('/api/waiting');
  if (!entry.value) return html`<h1>Waiting</h1>${loading(entry)}`;
  const { gangs, states, takenAt } = entry.value;
  const planned = plannedReasons(gangs);
  const wanted = state.query.get('find') ?? '';
  const found = gangs.filter((row) => row.gang.includes(wanted));
  const opened = state.query.get('explain');
  return html`
    <h1>Waiting</h1>
    <dl class="facts">
      ${Object.entries(states).map(
        ([word, n]) => html`<div>
          <dt>${word}</dt>
          <dd>${n}</dd>
        </div>`,
      )}
    </dl>
    <div class="tools">
      <label
        >Find
        <input
          type="search"
          .value=${wanted}
          @input=${(event) => go({ find: event.target.value }, { replace: true })}
        />
      </label>
    </div>
    ${opened ? explanation(opened) : nothing}
    ${found.length
      ? table(
          'Gangs that wait or lack members',
          [
            ['Place', 'number'], ['Gang'], ['State'], ['Why'], ['Since', 'number'],
            ['Bound', 'number'], ['Priority', 'number'], ['Explain'],
          ],
          found,
          (row) => {
            const why = row.reason ? row : (planned.get(row.gang) ?? row);
            return [
              row.place ?? '–',
              gangLink(row.gang),
              badge(row.state),
              html`<b>${visible(why.reason)}</b>
                <span class="message">${visible(why.message ?? why.sentence ?? '')}</span>`,
              html`<time title=${moment(row.since)}>${age(row.since, takenAt)}</time>`,
              `${row.bound}/${row.needed}`,
              row.priority,
              html`<button
                aria-label=${`Explain ${visible(row.gang)}`}
                @click=${() => go({ explain: row.gang }, { focus: '#explanation' })}
              >
                Explain
              </button>`,
            ];
          },
        )
      : html`<p>No gang waits${wanted ? ' whose name has these letters' : ''}.</p>`}
  `;
}

// Where no operator has said why a gang waits, as in files, the planner does.
function plannedReasons(gangs) {
  if (gangs.every((row) => row.reason) || state.about.live) return new Map();
  const plan = need('/api/plan', {}, 'once').value;
  const rows = plan ? plan.plan.gangs : [];
  return new Map(
    rows
      .filter((row) => row.answer === 'waits' || row.answer === 'starts')
      .map((row) => [
        row.kind === 'PodGroup' ? row.gang : `${row.gang}/${row.kind}`,
        row.answer === 'starts' ? { reason: 'the plan starts it' } : row,
      ]),
  );
}

// Explanations that were asked for, by gang: they take several plans.
const explained = {};
function ask(gang) {
  explained[gang]?.abort?.abort();
  const own = (explained[gang] = { plans: 0, begun: Date.now(), abort: new AbortController() });
  explain(gang, own.abort.signal, (n) => {
    own.plans = n;
    draw();
  })
    .then((answer) => Object.assign(own, { answer }))
    .catch((why) => Object.assign(own, { problem: why.message }))
    .finally(draw);
  return own;
}

export function explanation(gang) {
  const own = explained[gang] ?? ask(gang);
  const again = html`<button @click=${() => { ask(gang); draw(); }}>Explain again</button>`;
  const body = own.answer
    ? answered(own.answer)
    : own.problem
      ? problem(own.problem)
      : html`<p role="status">
          <progress aria-label="Explaining"></progress>
          ${own.plans ? `${count(own.plans, 'plan')} made so far` : 'Planning'} …
        </p>`;
  return html`<section class="panel" aria-label="Explanation" id="explanation" tabindex="-1">
    <h2>Why ${gangLink(gang)} waits, and what would start it</h2>
    ${body} ${own.answer || own.problem ? again : nothing}
    ${state.view === 'waiting'
      ? html`<button @click=${() => go({ explain: '' })}>Close</button>`
      : nothing}
  </section>`;
}

// The sentences of `tutti explain`; lines that begin with a dash are a list.
function answered(answer) {
  const plans = answer.gangs[0].advice?.diagnosis?.plans;
  const parts = []; // each sentence, with the list that follows it
  for (const line of answer.sentences) {
    const words = line.trimStart();
    if (words.startsWith('- ') && parts.length) parts.at(-1).items.push(words.slice(2));
    else parts.push({ line, items: [] });
  }
  return html`
    ${parts.map(
      ({ line, items }) => html`
        <div class="message">${visible(line)}</div>
        ${items.length
          ? html`<ul>
              ${items.map((item) => html`<li class="message">${visible(item)}</li>`)}
            </ul>`
          : nothing}
      `,
    )}
    ${plans
      ? html`<p class="quiet">
          ${count(plans, 'plan')} made. “proved” means that no smaller change of this kind is enough.
        </p>`
      : nothing}
  `;
}

export function gang() {
  const entry = need('/api/gang', { name: state.path });
  const one = entry.value;
  if (!one || entry.problem) return html`<h1>${name(state.path)}</h1>${loading(entry)}`;
  const fact = (title, value) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`;
  const mayExplain = one.state === 'waiting' || one.state === 'degraded';
  const shown = state.query.get('explain');
  return html`
    <h1>${name(one.gang)} ${badge(one.state)}</h1>
    <dl class="facts">
      ${fact('Bound', `${one.bound} of ${one.needed} needed`)}
      ${fact('Members', one.members.length)} ${fact('Priority', one.priority)}
      ${one.priorityClass ? fact('Priority class', name(one.priorityClass)) : nothing}
      ${fact('Created', moment(one.created))}
      ${one.since === null ? nothing : fact('Waits for', age(one.since, one.takenAt))}
      ${fact('If members are lost', one.onPartial)}
    </dl>
    <p>
      <a href=${`#/map?gang=${encodeURIComponent(one.gang)}`}>Show it on the map</a>
      ${mayExplain && !shown
        ? html` · <button @click=${() => go({ explain: '1' }, { focus: '#explanation' })}>Explain why it waits</button>`
        : nothing}
      · <a href=${`#/what-if?priority=${encodeURIComponent(`${one.gang}:1000`)}`}
        >What if its priority were 1000?</a
      >
    </p>
    ${shown ? explanation(one.gang) : nothing}
    <h2>What members ask for</h2>
    <ul>
      ${one.requests.map(
        (asked) =>
          html`<li>
            ${count(asked.members, 'member')}:
            ${Object.entries(asked.requests).map(
              ([key, n], i) => html`${i ? ', ' : ''}${n} ${name(key)}`,
            )}
          </li>`,
      )}
    </ul>
    ${one.roles.length
      ? html`<h2>Roles</h2>
          ${table(
            'Roles',
            [['Role'], ['Needed', 'number'], ['At most', 'number'], ['There', 'number'], ['Bound', 'number']],
            one.roles,
            (role) => [
              name(role.name), role.minMember, role.maxMember ?? '–', role.present, role.bound,
            ],
          )}`
      : nothing}
    <h2>Conditions</h2>
    ${one.conditions.length
      ? table(
          'Conditions',
          [['Type'], ['Status'], ['Reason'], ['Message'], ['Since']],
          one.conditions,
          (line) => [
            name(line.type), line.status, name(line.reason), visible(line.message),
            line.lastTransitionTime,
          ],
        )
      : html`<p class="quiet">None is known.</p>`}
    <h2>Reservation</h2>
    ${one.reservation ? reservation(one.reservation) : html`<p class="quiet">None stands.</p>`}
    <h2>Members</h2>
    ${table(
      'Members',
      [['Pod'], ['Role'], ['Node'], ['Phase'], ['Waits because']],
      one.members,
      (member) => [
        name(member.name),
        name(member.role || '–'),
        member.node ? nodeLink(member.node) : '–',
        member.terminating ? `${member.phase}, terminating` : member.phase,
        member.node ? '' : visible([...member.gates, member.reason, member.message].join(' ').trim()),
      ],
    )}
    <h2>Events</h2>
    ${one.eventsProblem ? problem(one.eventsProblem) : nothing}
    ${one.events.length
      ? table(
          'Events',
          [['When'], ['Reason'], ['Message'], ['Times', 'number']],
          one.events,
          (event) => [event.at, name(event.reason), visible(event.message), event.count],
        )
      : html`<p class="quiet">None is known.</p>`}
  `;
}

const reservation = (held) => html`
  <p>
    ${name(held.name)}, written ${moment(held.reservedAt)}${held.evicts
      ? `; ${count(held.evicts, 'member')} will be evicted`
      : ''}.
  </p>
  <ul>
    ${held.nodes.map(([node, n]) => html`<li>${nodeLink(node)}: ${count(n, 'member')}</li>`)}
    ${held.slots.map(
      ([node, role, n]) =>
        html`<li>${nodeLink(node)}: room for ${n} of role ${name(role || '–')}</li>`,
    )}
  </ul>
`;
