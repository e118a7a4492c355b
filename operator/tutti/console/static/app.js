// The page: the address says what is shown; whatever changes is drawn again.

import { html, nothing, render } from './vendor/lit-html.js';
import { follow, get, open } from './server.js';
import { moment, visible } from './text.js';
import * as gangs from './gang_views.js';
import { help, listen, openHelp } from './keys.js';
import { map } from './map_view.js';
import * as plans from './plan_views.js';
import { queues, wouldBeEnded } from './queue_views.js';

const VIEWS = {
  map: ['Map', map],
  waiting: ['Waiting', gangs.waiting],
  gangs: ['Gangs', gangs.list],
  queues: ['Queues', queues],
  'would-be-ended': ['Would be ended', wouldBeEnded],
  gang: ['', gangs.gang],
  planner: ['Planner', plans.planner],
  'what-if': ['What if', plans.whatIf],
};

const FILL_AFTER = 100; // milliseconds after the picture of a view, when its long tables are filled

// The views of the navigation, in order.
export const titledViews = () => Object.entries(VIEWS).filter(([, [title]]) => title);

export const state = {
  view: 'map',
  path: '', // what follows the view in the address
  query: new URLSearchParams(),
  about: null,
  news: { version: 0, missing: [] },
  lost: null, // why the console does not answer
  data: {}, // what was fetched, by its address
  isFresh: true, // the view has just been opened: the rest of long tables follows its picture
};

// Fetches what a view needs and draws it once it is here; the old answer is shown meanwhile.
const RESTS = 3; // times as long as an answer took, before the same question
const asked = new Map();
export function need(path, query = {}, version = state.news.version) {
  const key = `${path}?${new URLSearchParams(query)}`;
  const entry = (state.data[key] ??= { value: null, problem: null, pause: 0 });
  const wait = entry.pause - performance.now();
  if (asked.get(key) === version || entry.isBusy) return entry;
  if (wait > 0) setTimeout(draw, wait);
  else {
    asked.set(key, version);
    entry.isBusy = true;
    const begin = performance.now();
    get(path, query)
      .then((value) => Object.assign(entry, { value, problem: null }))
      .catch((why) => Object.assign(entry, { problem: why }))
      .finally(() => {
        entry.isBusy = false;
        entry.pause = performance.now() + RESTS * (performance.now() - begin);
        draw();
      });
  }
  return entry;
}

// Forgets what was fetched, so that the next drawing asks again.
export function forget(path) {
  for (const key of asked.keys()) {
    if (!key.startsWith(path)) continue;
    asked.delete(key);
    state.data[key].pause = 0;
  }
  draw();
}

// Shows another address: of this view with other words, or of another view.
export function go(changes, { replace = false, focus = '' } = {}) {
  const query = new URLSearchParams(state.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const words = query.toString();
  const path = state.path && `/${encodeURIComponent(state.path)}`;
  const address = `#/${state.view}${path}${words && `?${words}`}`;
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  read();
  if (focus) queueMicrotask(() => document.querySelector(focus)?.focus());
}

function read() {
  const [path, words = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [view, ...rest] = path.split('/');
  const isNew = view !== state.view;
  state.view = view in VIEWS ? view : 'map';
  try {
    state.path = decodeURIComponent(rest.join('/'));
  } catch {
    state.path = '';
  }
  state.query = new URLSearchParams(words);
  state.isFresh ||= isNew;
  draw();
  if (isNew) document.querySelector('#content')?.focus();
}

let isQueued = false;
export function draw() {
  if (isQueued) return;
  isQueued = true;
  queueMicrotask(() => {
    isQueued = false;
    const title = VIEWS[state.view][0] || visible(state.path);
    document.title = `${title} · Tutti`;
    render(page(), document.querySelector('#app'));
  });
}

let filling = 0;
export function fillSoon() {
  filling ||= setTimeout(() => {
    filling = 0;
    state.isFresh = false;
    draw();
  }, FILL_AFTER);
}

function page() {
  return html`
    <header>
      <span class="brand">Tutti</span>
      <nav aria-label="Views">
        <ul>
          ${titledViews().map(
              ([view, [title]]) =>
                html`<li>
                  <a href=${`#/${view}`} aria-current=${view === state.view ? 'page' : nothing}
                    >${title}</a
                  >
                </li>`,
          )}
        </ul>
      </nav>
      <span class="source">${source()}</span>
      <button class="help" aria-label="Help and keys" title="Help and keys (?)" @click=${openHelp}>?</button>
    </header>
    ${help()}
    ${banner()}
    <main id="content" tabindex="-1">
      ${state.about ? VIEWS[state.view][1](state) : state.lost ? nothing : 'Loading …'}
    </main>
  `;
}

function source() {
  if (!state.about) return nothing;
  const { title, live, takenAt } = state.about;
  if (!live) {
    const names = title.split(', ').map((path) => path.split('/').pop());
    return html`<span title=${visible(title)}>file: ${visible(names.join(', '))}</span>, of ${moment(takenAt)}`;
  }
  const words = state.lost ? 'last seen' : 'live';
  return html`<span class=${`dot ${state.lost ? 'away' : 'near'}`}></span>${words}: ${visible(title)}`;
}

function banner() {
  if (state.lost?.status === 401) {
    return html`<div class="banner" role="alert">
      This browser has no access. Open the link that <code>tutti ui</code> printed; it is good for
      one browser. If it was used, start <code>tutti ui</code> again.
    </div>`;
  }
  const away = state.news.missing.filter((one) => !one.is_forbidden);
  const forbidden = state.news.missing.filter((one) => one.is_forbidden);
  return html`
    ${state.lost
      ? html`<div class="banner" role="alert" id="lost">
          The connection to the console is lost. The page shows what it saw last, and tries again.
          If you ended <code>tutti ui</code>, start it again and open its link.
        </div>`
      : nothing}
    ${away.length
      ? html`<div class="banner" role="alert" id="away">
          The API server does not answer for ${away.map((one) => one.kind).join(', ')}. The page
          shows what it saw last, and tries again.
          <ul>
            ${[...new Set(away.map((one) => one.sentence))].map(
              (sentence) => html`<li>${visible(sentence)}</li>`,
            )}
          </ul>
        </div>`
      : nothing}
    ${forbidden.length
      ? html`<details class="banner" id="forbidden" open>
          <summary>You may not see everything: ${forbidden.length} rights are missing.</summary>
          <ul>
            ${forbidden.map(
              (one) =>
                html`<li>
                  ${one.kind}: you need the right to <b>${one.right}</b>.
                  <span class="quiet">${visible(one.sentence)}</span>
                </li>`,
            )}
          </ul>
        </details>`
      : nothing}
  `;
}

async function begin() {
  try {
    await open();
    state.about = await get('/api/about');
    state.news = state.about;
  } catch (why) {
    state.lost = why;
  }
  addEventListener('hashchange', read);
  addEventListener('popstate', read);
  listen();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  read();
  if (state.lost?.status === 401) return;
  requestIdleCallback(gangs.prepare);
  follow({
    changed: async (news) => {
      const isBack = state.lost !== null;
      state.news = news;
      state.lost = null;
      if (!state.about || isBack) state.about = await get('/api/about').catch(() => state.about);
      draw();
    },
    still: (news) => {
      state.news = news;
      draw();
    },
    lost: (why) => {
      state.lost = why;
      draw();
    },
  });
}

begin();
