// The operator's own figures: its cycles, their stages, its plans and their proofs.

import { html, nothing } from './vendor/lit-html.js';
import { need, state } from './app.js';
import { table } from './tables.js';
import { count, duration, moment, name, problem, share, visible } from './text.js';

const REST = 5000; // milliseconds between two looks at the metrics
const MOST_LOOKS = 20;

// What happened between two looks while this page was open, by pod; the newest first.
const looks = new Map();

const sum = (amounts) => Object.values(amounts).reduce((all, n) => all + n, 0);
const secondsOf = ({ stages }) => stages.reduce((all, { seconds }) => all + seconds, 0);
const mean = (seconds, times) => (times ? duration(seconds / times) : '–');

export function operator() {
  if (!state.about.live) return nothing;
  const entry = need('/api/operators', {}, Math.floor(Date.now() / REST));
  return html`<h2>The operator</h2>
    ${entry.problem
      ? problem(entry.problem.message)
      : entry.value
        ? replicas(entry.value.replicas)
        : html`<p class="quiet">Its metrics are being read.</p>`}`;
}

function replicas(all) {
  if (!all.length) {
    return html`<p>
      No pod of the operator is here that you may see. If it runs elsewhere, its
      metrics have its cycles, plans and proofs.
    </p>`;
  }
  const leaders = all.filter((one) => one.figures?.leads);
  const others = all.filter((one) => one.figures && !one.figures.leads);
  return html`
    ${all.filter((one) => one.problem).map(missing)} ${leaders.map(leader)}
    ${others.length
      ? html`<p class="quiet">
          ${others.map((one, i) => html`${i ? ', ' : ''}${name(one.pod)}`)} ${others.length > 1 ? 'do' : 'does'} not lead.
        </p>`
      : nothing}
  `;
}

const missing = (one) => html`<p class="problem">
  ${one.right
    ? html`To see the figures of ${name(one.pod)}, you need the right to <b>${one.right}</b>.`
    : html`${name(one.pod)} does not say its figures.`}
  <span class="quiet">${visible(one.problem)}</span>
</p>`;

function leader({ pod, figures }) {
  const { mode, cycles, plans, gap, stages } = figures;
  const rows = look(pod, figures);
  const fact = (title, value) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`;
  const times = sum(cycles);
  return html`
    <dl class="facts" id="operator">
      ${fact('Leads', name(pod))} ${fact('Mode', visible(mode))}
      ${fact('Cycles', `${times}${cycles.failed ? `, ${cycles.failed} failed` : ''}`)}
      ${fact('A cycle takes', mean(secondsOf(figures), times))}
      ${fact('Plans', sum(plans))} ${fact('Proved', plans.proved ?? 0)}
      ${plans.broken ? fact('Dropped', plans.broken) : nothing}
      ${fact('Gap of the last plan', share(gap))}
    </dl>
    <h3>Its last plans</h3>
    ${rows.length
      ? table(
          'Its last plans',
          [['Until'], ['Cycles', 'number'], ['A cycle took', 'number'], ['A plan took', 'number'], ['Proved'], ['Gap', 'number']],
          rows,
          (row) => [
            moment(row.at),
            row.cycles,
            mean(row.seconds, row.cycles),
            mean(row.planning, row.planned),
            `${row.proved} of ${count(row.plans, 'plan')}`,
            share(row.gap),
          ],
        )
      : html`<p class="quiet">It has made none since this page was opened.</p>`}
    <details>
      <summary>Stages of a cycle</summary>
      ${table(
        'Stages of a cycle',
        [['Stage'], ['Times', 'number'], ['Mean', 'number'], ['95 % within', 'number']],
        stages,
        (stage) => [
          stage.stage,
          stage.times,
          mean(stage.seconds, stage.times),
          stage.within === null ? '–' : duration(stage.within),
        ],
      )}
    </details>
  `;
}

// Compares with the look before, and answers what happened between looks.
function look(pod, figures) {
  const planning = figures.stages.find(({ stage }) => stage === 'plan') ?? { seconds: 0, times: 0 };
  const now = {
    figures,
    cycles: sum(figures.cycles),
    seconds: secondsOf(figures),
    planning: planning.seconds,
    planned: planning.times,
    plans: sum(figures.plans),
    proved: figures.plans.proved ?? 0,
  };
  const own = looks.get(pod) ?? { last: now, rows: [] };
  looks.set(pod, own);
  const before = own.last;
  if (before.figures === figures) return own.rows;
  const isNewProcess = now.cycles < before.cycles;
  if (now.plans > before.plans && !isNewProcess) {
    const keys = ['cycles', 'seconds', 'planning', 'planned', 'plans', 'proved'];
    const row = Object.fromEntries(keys.map((key) => [key, now[key] - before[key]]));
    own.rows = [{ ...row, at: Date.now() / 1000, gap: figures.gap }, ...own.rows].slice(0, MOST_LOOKS);
    own.last = now;
  } else if (isNewProcess) own.last = now;
  return own.rows;
}
