// Gangs: those that wait, why one of them waits, and everything about one.

import { html, nothing } from './vendor/lit-html.js';
import { draw, go, need, state } from './app.js';
import { queuesOfGangs } from './map_view.js';
import { Newest } from './newest.js';
import { explain } from './server.js';
import { find, finder, loading, noneFound, table } from './tables.js';
import {
  age, ago, commands, compareNames, copy, count, gangLink, moment, momentOf, name, nameOf, nodeLink,
  problem, quoted, sorterByName, visible,
} from './text.js';

const REST_OF_EVENTS = 5000; // milliseconds

const gangs = new Newest('/api/waiting', (row) => row.gang);
const allGangs = new Newest('/api/gangs', (row) => row.gang);
// Of a large cluster, the first answer takes time: it is asked for before somebody wants it.
export const prepare = () => gangs.ask();

const byPlace = (a, b) =>
  (a.rank ?? Infinity) - (b.rank ?? Infinity) || (a.gang < b.gang ? -1 : 1);
const sortByPlace = (rows) => [...rows].sort(byPlace);
const sortByName = sorterByName((row) => row.gang);

const sorted = new WeakMap(); // by rows as they were answered
function inOrder(rows, sort) {
  if (!sorted.has(rows)) sorted.set(rows, sort(rows));
  return sorted.get(rows);
}

export const gangsInLine = () => inOrder(gangs.ask().all, sortByPlace);

const badge = (word) => html`<span class=${`badge ${word}`}>${word}</span>`;

// How many gangs are in each state; each number leads to them.
const states = (counts, chosen) => html`<ul class="facts" aria-label="Gangs by state">
  ${Object.entries(counts).map(
    ([word, n]) => html`<li>
      <a class="fact" href=${`#/gangs?state=${word}`} aria-current=${word === chosen ? 'true' : nothing}
        ><span>${word}</span> <b>${n}</b></a
      >
    </li>`,
  )}
</ul>`;

export function waiting() {
  const { all, answer } = gangs.ask();
  if (!answer) return html`<h1>Waiting</h1>${loading(gangs)}`;
  const planned = plannedReasons(all);
  const why = (row) => (row.reason ? row : (planned.get(row.gang) ?? row));
  const opened = state.query.get('explain');
  const has = finder();
  const isFound = (row) => has(row.gang, row.queue, why(row).reason, why(row).message ?? why(row).sentence);
  const found = inOrder(all, sortByPlace).filter((row) => !has || isFound(row));
  return html`
    <h1>Waiting</h1>
    ${states(answer.states, '')}
    <div class="tools">${find('Find', 'gang, queue or reason')}</div>
    ${opened ? explanation(opened) : nothing}
    ${found.length
      ? waitingTable(found, why, answer.takenAt)
      : has
        ? noneFound('gang that waits')
        : html`<p>No gang waits, and none lacks members.</p>`}
  `;
}

const queueColumn = (rows) => (rows.some((row) => row.queue) ? [['Queue', '', (row) => row.queue]] : []);

function waitingTable(rows, why, now) {
  const queue = queueColumn(rows);
  return table(
    'Gangs that wait or lack members',
    [
      ['Place', 'number', (row) => row.rank],
      ['Gang', 'head', (row) => row.gang],
      ['State', '', (row) => row.state],
      ...queue,
      ['Why', '', (row) => why(row).reason],
      ['Since', 'number', (row) => row.since && now - row.since],
      ['Bound', 'number', (row) => row.bound],
      ['Priority', 'number', (row) => row.priority],
      ['Explain', 'action'],
    ],
    rows,
    (row) => [
      row.place === null
        ? '–'
        : html`<span title=${row.queue ? `in queue ${visible(row.queue)}` : ''}>${row.place}</span>`,
      gangLink(row.gang),
      badge(row.state),
      ...queue.map(() => name(row.queue || '–')),
      html`<b>${visible(why(row).reason)}</b>
        <span class="message">${visible(why(row).message ?? why(row).sentence ?? '')}</span>`,
      ago(row.since, now),
      `${row.bound}/${row.needed}`,
      row.priority,
      html`<button
        aria-label=${`Explain ${visible(row.gang)}`}
        @click=${() => go({ explain: row.gang }, { focus: '#explanation' })}
      >
        Explain
      </button>`,
    ],
  );
}

// All gangs that have not ended.
export function list() {
  const { all, answer } = allGangs.ask();
  if (!answer) return html`<h1>Gangs</h1>${loading(allGangs)}`;
  const chosen = state.query.get('state');
  const has = finder();
  const found = inOrder(all, sortByName).filter(
    (row) => (!chosen || row.state === chosen) && (!has || has(row.gang, row.queue, row.reason)),
  );
  const queue = queueColumn(all);
  return html`
    <h1>Gangs</h1>
    ${states(answer.states, chosen)}
    <div class="tools">
      ${find('Find', 'gang, queue or reason')}
      ${chosen
        ? html`<button @click=${() => go({ state: '' }, { replace: true })}>Show all states</button>`
        : nothing}
    </div>
    ${found.length
      ? table(
          'Gangs',
          [
            ['Gang', 'head', (row) => row.gang],
            ['State', '', (row) => row.state],
            ...queue,
            ['Bound', 'number', (row) => row.bound],
            ['Nodes', 'number', (row) => row.nodes],
            ['Priority', 'number', (row) => row.priority],
            ['Age', 'number', (row) => answer.takenAt - row.created],
            ['Why', '', (row) => row.reason],
          ],
          found,
          (row) => [
            gangLink(row.gang),
            badge(row.state),
            ...queue.map(() => name(row.queue || '–')),
            `${row.bound}/${row.needed}`,
            row.nodes,
            row.priority,
            ago(row.created, answer.takenAt),
            visible(row.reason || '–'),
          ],
        )
      : has
        ? noneFound('gang')
        : html`<p>${chosen ? `No gang is ${visible(chosen)}.` : 'There is no gang.'}</p>`}
  `;
}

// Where no operator has said why a gang waits, as in files, the planner does.
function plannedReasons(all) {
  if (all.every((row) => row.reason) || state.about.live) return new Map();
  const plan = need('/api/plan', {}, 'once').value;
  const rows = plan ? plan.plan.gangs : [];
  return new Map(
    rows
      .filter((row) => row.answer === 'waits' || row.answer === 'starts')
      .map((row) => [
        nameOf(row),
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
    <h2>What ${gangLink(gang)} lacks, and what would help</h2>
    ${body} ${own.answer || own.problem ? again : nothing}
    ${state.view === 'waiting'
      ? html`<button @click=${() => go({ explain: '' })}>Close</button>`
      : nothing}
  </section>`;
}

// The sentences of `tutti explain`; lines that begin with a dash are a list.
function answered(answer) {
  const { plans, nodes } = answer.gangs[0].advice?.diagnosis ?? {};
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
    ${nodes?.count
      ? html`<p>
          <a href=${`#/what-if?${new URLSearchParams({ add: `${nodes.count}:${nodes.like}` })}`}
            >What if there were ${count(nodes.count, 'more node')} like ${name(nodes.like)}?</a
          >
        </p>`
      : nothing}
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
  if (!one || entry.problem) {
    return html`<h1>${name(state.path)}</h1>
      ${loading(entry)}
      ${entry.problem ? html`<p>It may have ended. <a href="#/gangs">All gangs</a></p>` : nothing}`;
  }
  const fact = (title, value) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`;
  const mayExplain = one.state === 'waiting' || one.state === 'degraded';
  const shown = state.query.get('explain');
  const queue = queuesOfGangs().get(one.gang);
  return html`
    <h1>${name(one.gang)} ${copy(one.gang)} ${badge(one.state)}</h1>
    <dl class="facts">
      ${fact('Bound', `${one.bound} of ${one.needed} needed`)}
      ${fact('Members', one.members.length)} ${fact('Priority', one.priority)}
      ${one.priorityClass ? fact('Priority class', name(one.priorityClass)) : nothing}
      ${queue ? fact('Queue', html`<a href="#/queues">${name(queue)}</a>`) : nothing}
      ${fact('Created', moment(one.created))}
      ${one.since === null ? nothing : fact('Waits for', age(one.since, one.takenAt))}
      ${fact('If members are lost', one.onPartial)}
      ${one.domains.length ? fact('Runs', one.domains.map((line) => html`<div>${visible(line)}</div>`)) : nothing}
    </dl>
    ${one.claim ? claimOf(one) : nothing} ${one.endsFor.map(endOf)}
    <p>
      <a href=${`#/map?gang=${encodeURIComponent(one.gang)}`}>Show it on the map</a>
      ${mayExplain && !shown
        ? html` · <button @click=${() => go({ explain: '1' }, { focus: '#explanation' })}>${one.state === 'waiting' ? 'Explain why it waits' : 'Explain what it lacks'}</button>`
        : nothing}
      · <a href=${`#/what-if?priority=${encodeURIComponent(`${one.gang}:1000`)}`}
        >What if its priority were 1000?</a
      >
    </p>
    ${shown ? explanation(one.gang) : nothing}
    <h2>What members request</h2>
    <ul>
      ${one.requests.map(
        (asked) =>
          html`<li>
            ${count(asked.members, 'member')}:
            ${Object.entries(asked.requests)
              .filter(([key]) => key !== 'pods')
              .map(([key, n], i) => html`${i ? ', ' : ''}${n} ${name(key)}`)}
          </li>`,
      )}
    </ul>
    ${one.roles.length
      ? html`<h2>Roles</h2>
          ${table(
            'Roles',
            [['Role', 'head'], ['Needed', 'number'], ['At most', 'number'], ['There', 'number'], ['Bound', 'number']],
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
          [['Type', 'head'], ['Status'], ['Reason'], ['Message'], ['Since']],
          [...one.conditions].sort((a, b) => (a.lastTransitionTime < b.lastTransitionTime ? 1 : -1)),
          (line) => [
            name(line.type), visible(line.status), name(line.reason), visible(line.message),
            momentOf(line.lastTransitionTime),
          ],
        )
      : html`<p class="quiet">${state.about.live ? 'None is known.' : 'Files have none.'}</p>`}
    <h2>Reservation</h2>
    ${one.reservation ? reservation(one.reservation) : html`<p class="quiet">There is none.</p>`}
    <h2>Members</h2>
    ${one.members.length ? members(one) : html`<p class="quiet">No pod of it exists.</p>`}
    <h2>Events</h2>
    ${events(one.gang)} ${state.about.live ? commands(commandsOf(one)) : nothing}
  `;
}

const sortMembers = (all) => [...all].sort((a, b) => compareNames(a.name, b.name));

function members(one) {
  const why = (member) =>
    member.node ? '' : [...member.gates, member.reason, member.message].join(' ').trim();
  const phase = (member) =>
    [member.phase, member.ends && 'to be ended', member.terminating && 'terminating'].filter(Boolean).join(', ');
  // Columns without a value in any row are left out.
  const role = one.members.some((member) => member.role) ? [['Role', '', (member) => member.role]] : [];
  const reason = one.members.some(why) ? [['Waits because', '', why]] : [];
  return table(
    'Members',
    [
      ['Pod', 'head', (member) => member.name], ...role,
      ['Node', '', (member) => member.node ?? member.reserved], ['Phase', '', phase], ...reason,
    ],
    inOrder(one.members, sortMembers),
    (member) => [
      name(member.name),
      ...role.map(() => name(member.role || '–')),
      member.node
        ? nodeLink(member.node)
        : member.reserved
          ? html`${nodeLink(member.reserved)} (reserved)`
          : '–',
      phase(member),
      ...reason.map(() => visible(why(member))),
    ],
  );
}

const commandsOf = ({ namespace, name: own, kind }) => [
  `kubectl tutti explain ${quoted(`${namespace}/${own}`)}`,
  kind === 'PodGroup'
    ? `kubectl get ptg ${quoted(own)} -n ${quoted(namespace)} -o yaml`
    : `kubectl get ${kind.toLowerCase()} ${quoted(own)} -n ${quoted(namespace)} -o yaml`,
  `kubectl get events -n ${quoted(namespace)} --field-selector involvedObject.name=${quoted(own)}`,
];

// How far the end of a gang has come that ends for another.
export function progress({ whole, pods, gone, terminating }) {
  const left = [gone && `${gone} gone`, terminating && `${terminating} terminating`].filter(Boolean);
  return `${count(pods, whole ? 'pod' : 'extra pod')}${left.length ? `: ${left.join(', ')}` : ', none gone yet'}`;
}

const claimOf = ({ claim, takenAt }) => html`<section class="panel" aria-label="Claim" id="claim">
  <h2>It starts once others have ended</h2>
  <p>Decided ${age(claim.reservedAt, takenAt)} ago.</p>
  ${claim.victims.length
    ? html`<ul>
        ${claim.victims.map((victim) => html`<li>${gangLink(victim.gang)}: ${progress(victim)}</li>`)}
      </ul>`
    : html`<p>It waits for pods that terminate already.</p>`}
</section>`;

const endOf = (victim) => html`<section class="panel" aria-label="End" id="end">
  <h2>${victim.whole ? 'It ends' : 'Extra members of it end'} so that ${gangLink(victim.gang)} starts</h2>
  <p>${progress(victim)}.</p>
</section>`;

// The API server is asked for them each time: so not each time that something changes.
function events(gang) {
  const entry = need('/api/events', { gang }, Math.floor(Date.now() / REST_OF_EVENTS));
  if (entry.problem) return problem(entry.problem.message);
  if (!entry.value) return html`<p class="quiet">Loading …</p>`;
  if (!entry.value.events.length) {
    return html`<p class="quiet">
      ${state.about.live ? 'None is known; the API server keeps them for an hour by default.' : 'Files have none.'}
    </p>`;
  }
  return table(
    'Events',
    [['When', '', (event) => event.at], ['Type', '', (event) => event.type], ['Reason', 'head', (event) => event.reason], ['Message'], ['Times', 'number', (event) => event.count]],
    entry.value.events,
    (event) => [
      momentOf(event.at), visible(event.type), name(event.reason), visible(event.message), event.count,
    ],
  );
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
