// Queues: the tree, what is charged of each quota, and the gangs.

import { html, nothing } from './vendor/lit-html.js';
import { need, state } from './app.js';
import { progress } from './gang_views.js';
import { find, finder, loading, noneFound, table } from './tables.js';
import {
  age, count, gangLink, linkOfText, moment, name, nameOf, numberOf, problem, visible,
} from './text.js';

const percent = (n) => `${(100 * Math.min(1, n)).toFixed(1)}%`;

// Up to the limit, or else up to what all nodes have.
function bar(queue, resource, offered) {
  const [charged, covered, guaranteed] = ['charged', 'covered', 'guaranteed'].map((key) =>
    numberOf(queue[key][resource]),
  );
  const whole = Math.max(numberOf(queue.limits[resource] ?? offered[resource]), charged) || 1;
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

function rows(queue, offered) {
  const guaranteed = Object.keys(queue.guaranteed).filter((key) => numberOf(queue.guaranteed[key]));
  const quotas = new Set([...guaranteed, ...Object.keys(queue.limits)]);
  const named = [...quotas].sort();
  return (named.length ? named : ['']).map((resource, i) => {
    const cell = (title, value, kind = '') =>
      html`<td class=${kind} data-title=${title}><span>${value}</span></td>`;
    const amount = (key) =>
      resource ? (queue[key][resource] ?? (key === 'limits' ? '–' : '0')) : '–';
    return html`<tr>
      ${i
        ? html`<td class="again"></td>`
        : html`<th scope="row">
            ${Array.from({ length: queue.depth }, () => html`<span class="indent"></span>`)}
            ${name(queue.name)}
            ${isShadow(queue) ? html`<span class="badge">shadow</span>` : nothing}
          </th>`}
      ${cell('Resource', name(resource || '–'))}
      ${cell('Use', resource ? bar(queue, resource, offered) : '–')}
      ${QUOTAS.map(([title, key]) => cell(title, amount(key), 'number'))}
      ${i ? cell('Waiting', '', 'number again') : cell('Waiting', queue.waiting, 'number')}
      ${i
        ? cell('Share', '', 'number again')
        : cell('Share', `${Math.floor(100 * queue.share)} %`, 'number')}
      ${i || !queue.parent ? cell('State', '', 'again') : cell('State', visible(queue.state))}
    </tr>`;
  });
}

const QUOTAS = [
  ['Charged', 'charged'],
  ['Covered', 'covered'],
  ['Borrowed', 'borrowed'],
  ['Guaranteed', 'guaranteed'],
  ['Limit', 'limits'],
];
const COLUMNS = [
  ['Queue'], ['Resource'], ['Use'], ...QUOTAS.map(([title]) => [title, 'number']),
  ['Waiting', 'number'], ['Share', 'number'], ['State'],
];

const stateOf = (row) => (Object.keys(row.charged).length ? 'runs' : 'waits');
const isShadow = (queue) => queue.mode === 'Shadow';
const linkOf = (row) => gangLink(nameOf(row));
const charged = (row) =>
  Object.entries(row?.charged ?? {})
    .map(([key, n]) => `${n} ${key}`)
    .join(', ');

export function queues() {
  const entry = need('/api/queues');
  if (!entry.value) {
    const words = entry.problem ? problem(entry.problem.message) : html`<p>Loading …</p>`;
    return html`<h1>Queues</h1>${words}`;
  }
  const { offered } = entry.value;
  const { queues: all, gangs } = entry.value.answer;
  if (!all.length) {
    return html`<h1>Queues</h1>
      <p>
        There is no Queue: all gangs share the cluster without quotas. With queues, each team has a
        guarantee, and may borrow what others leave free.
      </p>`;
  }
  const has = finder();
  const found = gangs.filter((row) => !has || has(row.gang, row.queue));
  return html`
    <h1>Queues</h1>
    <p class="quiet">A bar ends at the limit, or else at what all nodes have.</p>
    <ul class="legend" aria-label="Legend">
      <li><span class="chip bound"></span>charged, and covered by a guarantee</li>
      <li><span class="chip planned"></span>charged, and not covered</li>
      <li><span class="chip free"></span>free</li>
      <li><span class="chip mark"></span>the guarantee of the queue</li>
    </ul>
    <div class="wide" tabindex="0" role="region" aria-label="Queues">
      <table id="queues" class="cards">
        <caption>
          Queues, with all below them
        </caption>
        <thead>
          <tr>
            ${COLUMNS.map(([title, kind = '']) => html`<th class=${kind} scope="col">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${all.map((queue) => rows(queue, offered))}
        </tbody>
      </table>
    </div>
    ${all.flatMap((queue) =>
      queue.faults.map((fault) => problem(`queue ${queue.name}: ${fault}`)),
    )}
    ${all.some(isShadow)
      ? html`<p>
          A queue in shadow has limits that stop nobody yet:
          <a href="#/would-be-ended">which gangs they would have stopped</a>.
        </p>`
      : nothing}
    <h2>Gangs</h2>
    <div class="tools">${find('Find', 'gang or queue')}</div>
    ${has && !found.length ? noneFound('gang') : nothing}
    ${table(
      'Gangs of the queues',
      [
        ['Gang', 'head', nameOf], ['Queue', '', (row) => row.queue], ['State', '', stateOf],
        ['Priority', 'number', (row) => row.priority], ['Charged'],
      ],
      found,
      (row) => [
        linkOf(row),
        name(row.queue),
        stateOf(row),
        row.priority,
        visible(charged(row)),
      ],
    )}
  `;
}

// Who ends so that others start: now, and by the plan of now; and what limits in shadow would have
// stopped.
export function wouldBeEnded() {
  return html`
    <h1>Would be ended</h1>
    <h2>Ending now</h2>
    ${byClaims()}
    <h2>By the next plan</h2>
    ${byPreemption()}
    <h2>By limits in shadow</h2>
    ${byLimits()}
  `;
}

const RIGHTS = { guarantee: 'a guarantee covers it', priority: 'its priority is higher' };

// Claims that stand: their victims are being evicted.
function byClaims() {
  const entry = need('/api/claims');
  if (!entry.value) return loading(entry);
  const { claims, takenAt } = entry.value;
  if (!claims.length) return html`<p>No gang ends so that another starts.</p>`;
  return html`<div id="ending">
    ${table(
      'Gangs that end now so that others start',
      [['Starts', 'head', (claim) => claim.gang], ['Decided', '', (claim) => claim.reservedAt], ['Ends']],
      claims,
      (claim) => [
        gangLink(claim.gang),
        html`${age(claim.reservedAt, takenAt)} ago`,
        claim.victims.length
          ? claim.victims.map((victim) => html`<div>${gangLink(victim.gang)}: ${progress(victim)}</div>`)
          : 'pods that terminate already',
      ],
    )}
  </div>`;
}

const whatIf = (mode) =>
  html`<a href=${`#/what-if?preemption=${mode}`}>What if it were ${mode}?</a>`;

function byPreemption() {
  const entry = need('/api/plan', { fresh: '0' }, 'once');
  if (!entry.value) {
    return entry.problem
      ? problem(entry.problem.message)
      : html`<p role="status"><progress aria-label="Planning"></progress> Planning …</p>`;
  }
  const { plan, takenAt } = entry.value;
  const { preemption } = state.about.settings;
  const claims = plan.claims ?? [];
  const page = html`the plan that Tutti makes of the cluster as it was at ${moment(takenAt)}`;
  return html`
    ${claims.length
      ? html`<p>
            By ${page}, these gangs would end so that others start. While Tutti is paused or in shadow,
            nothing ends.
          </p>
          ${claimTable(claims)}`
      : html`<p>By ${page}, no gang would end so that another starts.</p>`}
    <p>
      Preemption is <b>${preemption}</b> in the settings of this
      ${state.about.live ? 'console' : 'file'}.
      ${preemption === 'Off' ? html`${whatIf('Reclaim')} ${whatIf('Full')}` : whatIf('Off')}
    </p>
  `;
}

// The claims of a plan, as `tutti plan` prints them.
export const claimTable = (claims) => html`<div id="claims">
  ${table(
    'Gangs that would end so that others start',
    [
      ['Starts', 'head', (claim) => claim.gang], ['Why it may', '', (claim) => RIGHTS[claim.by]],
      ['Ends'], ['Proved'],
    ],
    claims,
    (claim) => [
      linkOfText(claim.gang),
      RIGHTS[claim.by],
      claim.victims.length
        ? claim.victims.map((victim) => html`<div>${victimText(victim)}</div>`)
        : 'pods that terminate already',
      claim.bound >= claim.cost ? 'no other victims cost less' : 'no',
    ],
  )}
</div>`;

const victimText = ({ gang, whole, pods }) =>
  html`${count(pods.length, whole ? 'pod' : 'extra pod')} of ${linkOfText(gang)}`;

// Nothing is done to the gangs that limits in shadow would have stopped.
function byLimits() {
  const entry = need('/api/queues');
  if (!entry.value) return loading(entry);
  const { queues: all, gangs } = entry.value.answer;
  const shadows = all.filter(isShadow);
  const byName = new Map(gangs.map((row) => [nameOf(row), row]));
  const stopped = shadows.flatMap((queue) => queue.wouldStop.map((gang) => ({ queue, gang })));
  const names = shadows.map((queue, i) => html`${i ? ', ' : ''}${name(queue.name)}`);
  return html`
    <p>
      The guarantees and limits of a queue with <code>mode: Shadow</code> count for nothing. The queue
      says here which gangs its limits would have stopped. Nothing happens to these gangs.
    </p>
    ${!shadows.length
      ? html`<p>No queue is in shadow, so there is nothing to show.</p>`
      : !stopped.length
        ? html`<p>In shadow: ${names}. The limits would have stopped no gang that runs.</p>`
        : html`<p>In shadow: ${names}.</p>
            <div id="would-stop">
              ${table(
                'Gangs that limits in shadow would have stopped',
                [['Gang', 'head'], ['Limit of'], ['Priority', 'number'], ['Charged']],
                stopped,
                ({ queue, gang }) => [
                  linkOf(gang),
                  name(queue.name),
                  byName.get(nameOf(gang))?.priority ?? '–',
                  visible(charged(byName.get(nameOf(gang)))),
                ],
              )}
            </div>`}
  `;
}
