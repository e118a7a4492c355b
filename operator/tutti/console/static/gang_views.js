// Gangs: those that wait, why one of them waits, and everything about one.

import { html, nothing } from './vendor/lit-html.js';
import { draw, go, need, state } from './app.js';
import { Newest } from './newest.js';
import { explain } from './server.js';
import { loading, table } from './tables.js';
import { age, count, gangLink, moment, momentOf, name, nameOf, nodeLink, problem, visible } from './text.js';

const REST_OF_EVENTS = 5000; // milliseconds

const gangs = new Newest('/api/waiting', (row) => row.gang);
// Of a large cluster, the first answer takes time: it is asked for before somebody wants it.
export const prepare = () => gangs.ask();

const sorted = { of: null, rows: [] };
function inLine(all) {
  if (sorted.of !== all) {
    const place = (row) => row.place ?? Infinity;
    const rows = [...all].sort((a, b) => place(a) - place(b) || (a.gang < b.gang ? -1 : 1));
    Object.assign(sorted, { of: all, rows });
  }
  return sorted.rows;
}

export const gangsInLine = () => inLine(gangs.ask().all);

const badge = (word) => html`<span class=${`badge ${word}`}>${word}</span>`;

export function waiting() {
  const { all, answer } = gangs.ask();
  if (!answer) return html`<h1>Waiting</h1>${loading(gangs)}`;
  const { states, takenAt } = answer;
  const planned = plannedReasons(all);
  const wanted = state.query.get('find') ?? '';
  const found = inLine(all).filter((row) => row.gang.includes(wanted));
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
          [...one.conditions].sort((a, b) => (a.lastTransitionTime < b.lastTransitionTime ? 1 : -1)),
          (line) => [
            name(line.type), line.status, name(line.reason), visible(line.message),
            momentOf(line.lastTransitionTime),
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
    ${events(one.gang)}
  `;
}

// The API server is asked for them each time: so not each time that something changes.
function events(gang) {
  const entry = need('/api/events', { gang }, Math.floor(Date.now() / REST_OF_EVENTS));
  if (entry.problem) return problem(entry.problem.message);
  if (!entry.value) return html`<p class="quiet">Loading …</p>`;
  if (!entry.value.events.length) return html`<p class="quiet">None is known.</p>`;
  return table(
    'Events',
    [['When'], ['Reason'], ['Message'], ['Times', 'number']],
    entry.value.events,
    (event) => [momentOf(event.at), name(event.reason), visible(event.message), event.count],
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
