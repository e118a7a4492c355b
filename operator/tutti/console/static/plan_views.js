// What would be: the plan of the cluster as it is, and plans of a cluster that is different.

import { html, nothing } from './vendor/lit-html.js';
import { draw, fillSoon, forget, go, need, state } from './app.js';
import { post } from './server.js';
import { rowName } from './map.js';
import { gangsInLine } from './gang_views.js';
import { operator } from './operator_view.js';
import { claimTable } from './queue_views.js';
import {
  commands, compareNames, count, duration, gangLink, moment, name, nameOf, number, problem, quoted,
  share, visible,
} from './text.js';
import { drawing, legend, nodes } from './map_view.js';
import { find, finder, noneFound, table } from './tables.js';

const MOST_NAMES = 200; // that a field suggests
const MOST_NODES = 12; // of a gang that are listed at once
const WOULD_START = [['planned', 'would start']];

const linkOf = (row) => gangLink(nameOf(row));

function summary(plan) {
  const answers = new Map();
  for (const row of plan.gangs) answers.set(row.answer, (answers.get(row.answer) ?? 0) + 1);
  return html`
    <p>
      <span class=${`badge ${plan.proved ? 'proved' : 'tried'}`}
        >${plan.proved ? 'proved' : 'not proved'}</span
      >
      ${plan.proved ? 'No better admission exists.' : visible(plan.shortfall)}
    </p>
    <dl class="facts">
      ${[...answers].map(
        ([answer, n]) => html`<div>
          <dt>${answer}</dt>
          <dd>${n}</dd>
        </div>`,
      )}
      <div><dt>strategy</dt><dd>${name(plan.strategy)}</dd></div>
      <div><dt>objective</dt><dd>${name(plan.objective)}</dd></div>
    </dl>
  `;
}

export function planner() {
  const fresh = state.query.get('fresh') ?? '0';
  const entry = need('/api/plan', { fresh }, 'once');
  return html`
    <h1>Planner</h1>
    ${operator()}
    <h2>The plan of now</h2>
    ${entry.value
      ? planOfNow(entry)
      : entry.problem
        ? problem(entry.problem.message)
        : html`<p role="status"><progress aria-label="Planning"></progress> Planning …</p>`}
  `;
}

function planOfNow(entry) {
  const { plan, seconds, takenAt, maps, version, last } = entry.value;
  const isOld = version !== state.news.version && state.about.live;
  return html`
    <p>
      The plan that Tutti makes of the cluster as it was at ${moment(takenAt)}. The console made it in
      ${duration(seconds)}; it changes nothing.
    </p>
    ${isOld
      ? html`<p>
          The cluster has changed since.
          <button
            ?disabled=${entry.isBusy}
            @click=${() => {
              go({ fresh: '1' }, { replace: true });
              forget('/api/plan');
            }}
          >
            Plan again
          </button>
        </p>`
      : nothing}
    ${summary(plan)}
    <h3>Priorities</h3>
    <p class="quiet">Of the gangs that could start: their value in the units of the objective, and a bound on it.</p>
    ${plan.levels.length
      ? table(
          'Priorities',
          [['Priority', 'number'], ['Value admitted', 'number'], ['At most', 'number'], ['Gap', 'number']],
          plan.levels,
          (level) => [
            level.priority, number(level.admitted),
            level.bound === null ? 'unknown' : number(level.bound), share(level.gap),
          ],
        )
      : html`<p class="quiet">No gang that waits could start at all.</p>`}
    <h3>What the plan would start, on the map</h3>
    ${legend(maps[0].rows, state.query, WOULD_START)}
    ${drawing('plan', maps[0].rows, maps[0].labels, state.query)}
    ${plan.claims?.length ? html`<h3>Ends so that others start</h3>${claimTable(plan.claims)}` : nothing}
    <h3>Gangs</h3>
    ${gangsOfPlan(plan.gangs)}
    <h3>Last plans of the console</h3>
    ${table(
      'Last plans of the console',
      [['Cluster of'], ['Took', 'number'], ['Proved'], ['Gap', 'number'], ['Starts', 'number'], ['Waits', 'number']],
      last,
      (made) => [
        moment(made.takenAt),
        duration(made.seconds),
        made.proved ? 'yes' : 'no',
        share(made.gap),
        made.starts,
        made.waits,
      ],
    )}
  `;
}

function gangsOfPlan(all) {
  const has = finder();
  const found = all.filter((row) => !has || has(row.gang, row.answer, row.reason, row.sentence));
  return html`
    <div class="tools">${find('Find', 'gang, answer or reason')}</div>
    ${has && !found.length
      ? noneFound('gang')
      : table(
          'Gangs of the plan',
          [
            ['Gang', 'head', nameOf], ['Priority', 'number', (row) => row.priority],
            ['Answer', '', (row) => row.answer], ['Why or where'],
          ],
          found,
          (row) => [
            linkOf(row),
            row.priority,
            html`<span class=${`badge ${row.answer}`}>${row.answer}</span>`,
            row.sentence ? visible(row.sentence) : placesOf(row.nodes),
          ],
        )}
  `;
}

function placesOf(nodes) {
  const all = Object.entries(nodes).sort(([a], [b]) => compareNames(a, b));
  const places = (some) => some.map(([node, n]) => html`${name(node)} (${n}) `);
  if (all.length <= MOST_NODES) return places(all);
  return html`${places(all.slice(0, MOST_NODES))}
    <details>
      <summary>and ${count(all.length - MOST_NODES, 'more node')}</summary>
      ${places(all.slice(MOST_NODES))}
    </details>`;
}

// What-if: the address holds the changes, so that a link asks the same question again.
const CHANGES = ['add', 'remove', 'priority', 'queue', 'preemption', 'objective', 'manifest'];
const SINGLE = ['preemption', 'objective']; // settings: the last value counts
const given = (key) => state.query.getAll(key).filter(Boolean);
const rest = (words) => {
  const at = words.lastIndexOf(':');
  return [words.slice(0, at), words.slice(at + 1)];
};

function question() {
  return {
    addNodes: given('add').map((words) => {
      const at = words.indexOf(':');
      return { count: Number(words.slice(0, at)), like: words.slice(at + 1) };
    }),
    removeNodes: given('remove'),
    priorities: given('priority').map(rest).map(([gang, priority]) => ({ gang, priority: Number(priority) })),
    queues: given('queue'),
    preemption: given('preemption').at(-1) ?? '',
    objective: given('objective').at(-1) ?? '',
    manifest: given('manifest').join('\n---\n'),
  };
}

const asked = { words: '', answer: null, problem: null, isBusy: false };
function ask({ again = false } = {}) {
  const words = CHANGES.map((key) => given(key).join('\n')).join('\n\n');
  if (!words.trim() || (asked.words === words && !again)) return;
  Object.assign(asked, { words, version: state.news.version, answer: null, problem: null, isBusy: true });
  post('/api/what-if', question())
    .then((answer) => asked.words === words && Object.assign(asked, { answer }))
    .catch((why) => asked.words === words && Object.assign(asked, { problem: why.message }))
    .finally(() => {
      if (asked.words === words) asked.isBusy = false;
      draw();
    });
}

function change(key, value, { without = false } = {}) {
  const query = new URLSearchParams(state.query);
  const isKept = (old) => old && old !== value && !SINGLE.includes(key);
  const values = query.getAll(key).filter(isKept);
  query.delete(key);
  for (const kept of without ? values : [...values, value]) query.append(key, kept);
  location.hash = `#/what-if?${query}`;
}

export function whatIf() {
  ask();
  const isAsked = CHANGES.some((key) => given(key).length);
  return html`
    <h1>What if …</h1>
    <div class="what-if">
      ${isAsked
        ? html`<details class="more"><summary>Suppose more</summary><div class="what-if">${forms()}</div></details>`
        : forms()}
      ${suggestions('nodes', nodeNames)} ${suggestions('gangs', gangNames)}
      ${suggestions('queues', queueNames)} ${suggestions('resources', resourceNames)}
    </div>
    ${isAsked
      ? chosen()
      : html`<p>Choose a change: Tutti plans without and with it. Nothing changes in the cluster.</p>`}
    ${isAsked ? result() : nothing}
  `;
}

// What fields suggest comes after the first picture of the view.
function suggestions(id, names) {
  if (state.isFresh) fillSoon();
  return html`<datalist id=${id}>
    ${state.isFresh ? nothing : names().map((one) => html`<option value=${visible(one)}></option>`)}
  </datalist>`;
}

const queuesNow = () => (need('/api/queues').value?.answer.queues ?? []).filter((queue) => queue.parent);
const queueNames = () => queuesNow().map((queue) => queue.name).slice(0, MOST_NAMES);

// Resources with a quota; without any, those that nodes have.
function resourceNames() {
  const named = queuesNow().flatMap((queue) => Object.keys({ ...queue.limits, ...queue.guaranteed }));
  const offered = Object.keys(need('/api/queues').value?.offered ?? {});
  return [...new Set([...named, ...offered])].slice(0, MOST_NAMES);
}

const nodeNames = () => nodes.ask().all.slice(0, MOST_NAMES).map(rowName);

// Gangs that wait first: most questions are about them.
function gangNames() {
  const waiting = gangsInLine().map((row) => row.gang).slice(0, MOST_NAMES);
  if (waiting.length === MOST_NAMES) return waiting;
  const running = nodes.all.flatMap((row) => row[7].map(([gang]) => gang));
  return [...new Set([...waiting, ...running])].slice(0, MOST_NAMES);
}

function forms() {
  const form = (title, fields, submit) => html`<form
    @submit=${(event) => {
      event.preventDefault();
      submit(new FormData(event.target));
      event.target.reset();
    }}
  >
    <fieldset>
      <legend>${title}</legend>
      ${fields} <button class="main">Add</button>
    </fieldset>
  </form>`;
  return [
    form(
      '… there were more nodes',
      html`<label>How many <input name="count" type="number" min="1" max="100000" value="1" required /></label>
        <label>like this node <input name="like" list="nodes" required /></label>`,
      (data) => change('add', `${data.get('count')}:${data.get('like')}`),
    ),
    form(
      '… a node were drained',
      html`<label>Node <input name="node" list="nodes" required /></label>`,
      (data) => change('remove', data.get('node')),
    ),
    form(
      '… a gang had another priority',
      html`<label>Gang <input name="gang" list="gangs" required /></label>
        <label>Priority <input name="priority" type="number" required /></label>`,
      (data) => change('priority', `${data.get('gang')}:${data.get('priority')}`),
    ),
    form(
      '… a queue had another quota',
      html`<label>Queue <input name="queue" list="queues" required /></label>
        <label>Its
          <select name="field">
            <option value="limit">limit of</option>
            <option value="guaranteed">guarantee of</option>
          </select></label>
        <label>Resource <input name="resource" list="resources" required /></label>
        <label>Quantity <input name="quantity" placeholder="48, or none" size="10" required /></label>`,
      (data) => {
        const [queue, field, resource, quantity] = ['queue', 'field', 'resource', 'quantity'].map((key) => data.get(key));
        change('queue', `${queue}.${field}.${resource}=${quantity}`);
      },
    ),
    form(
      '… preemption were set otherwise',
      html`<label>Preemption
        <select name="preemption">
          ${['Off', 'Reclaim', 'Full'].map((mode) => html`<option ?selected=${mode === 'Reclaim'}>${mode}</option>`)}
        </select></label>`,
      (data) => change('preemption', data.get('preemption')),
    ),
    form(
      '… plans had another objective',
      html`<label>Objective
        <select name="objective">
          ${['resources', 'gangs', 'members'].map((mode) => html`<option>${mode}</option>`)}
        </select></label>`,
      (data) => change('objective', data.get('objective')),
    ),
    html`<details>
      <summary>… you created the objects of a manifest</summary>
      ${form(
        'Objects',
        html`<label>YAML or JSON <textarea name="manifest" required></textarea></label>`,
        (data) => change('manifest', data.get('manifest')),
      )}
    </details>`,
  ];
}

function chosen() {
  const words = {
    add: (value) => `${value.split(':')[0]} more like ${value.slice(value.indexOf(':') + 1)}`,
    remove: (value) => `without node ${value}`,
    priority: (value) => `${rest(value)[0]} with priority ${rest(value)[1]}`,
    queue: (value) => `queue ${value}`,
    preemption: (value) => `with preemption ${value}`,
    objective: (value) => `with objective ${value}`,
    manifest: (value) => `with ${count(value.trim().split('\n').length, 'line')} of manifest`,
  };
  return html`<ul>
    ${CHANGES.flatMap((key) =>
      given(key).map(
        (value) => html`<li>
          ${name(words[key](value))}
          <button
            aria-label=${`Take back: ${visible(words[key](value))}`}
            @click=${() => change(key, value, { without: true })}
          >
            Take back
          </button>
        </li>`,
      ),
    )}
  </ul>
  ${commands(theSame())}`;
}

// The same question for `tutti plan`.
function theSame() {
  const words = {
    add: (value) => ['--add-nodes', value.split(':')[0], '--like', value.slice(value.indexOf(':') + 1)],
    remove: (value) => ['--remove-node', value],
    priority: (value) => ['--set-priority', `${rest(value)[0]}=${rest(value)[1]}`],
    queue: (value) => ['--set-queue', value],
    preemption: (value) => ['--preemption', value],
    objective: (value) => ['--objective', value],
    manifest: () => ['--add', 'manifest.yaml'],
  };
  const options = CHANGES.flatMap((key) => given(key).flatMap((value) => words[key](value)));
  const dump = state.about.live ? ['kubectl tutti dump -o now.json'] : [];
  const files = state.about.live ? ['now.json'] : state.about.title.split(', ');
  return [...dump, ['tutti plan', ...[...files.flatMap((file) => ['-f', file]), ...options].map(quoted)].join(' ')];
}

function result() {
  if (asked.problem) return problem(asked.problem);
  if (!asked.answer) {
    return html`<p role="status"><progress aria-label="Planning"></progress> Planning twice …</p>`;
  }
  const { plan, maps } = asked.answer;
  const titles = ['Before', 'After'];
  const claims = plan.after.claims ?? [];
  const again = html`<p>
    The cluster has changed since.
    <button
      @click=${() => {
        ask({ again: true });
        draw();
      }}
    >
      Plan again
    </button>
  </p>`;
  return html`
    ${state.about.live && asked.version !== state.news.version ? again : nothing}
    <h2>Difference</h2>
    ${plan.difference.length
      ? table(
          'Difference',
          [
            ['Gang', 'head', nameOf], ['Change', '', (row) => row.change], ['Before'], ['After'], ['Why'],
          ],
          plan.difference,
          (row) => [
            linkOf(row),
            html`<b>${row.change}</b>`,
            row.before?.answer ?? '–',
            row.after?.answer ?? '–',
            visible(row.after?.sentence ?? ''),
          ],
        )
      : html`<p>Every gang gets the same answer as before.</p>`}
    ${claims.length
      ? html`<h2>After: ends so that others start</h2>${claimTable(claims)}`
      : given('preemption').length
        ? html`<p>After it, no gang would end so that another starts.</p>`
        : nothing}
    <div class="pair">
      ${maps.map(
        (map, i) => html`<section class="panel" aria-label=${titles[i]}>
          <h2>${titles[i]}</h2>
          ${summary(i ? plan.after : plan.before)} ${legend(map.rows, state.query, WOULD_START)}
          ${drawing(titles[i], map.rows, map.labels, state.query)}
        </section>`,
      )}
    </div>
  `;
}
