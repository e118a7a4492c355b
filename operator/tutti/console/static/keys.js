// Keys of the whole page, and the page's help.

import { html } from './vendor/lit-html.js';
import { state, titledViews } from './app.js';

const OFF = 'tutti-console-keys-off'; // set if the user has turned off keys of one character
const FIELDS = 'input, textarea, select, [contenteditable]';

const isOff = () => localStorage.getItem(OFF) !== null;
const dialog = () => document.querySelector('#help');

export const openHelp = () => dialog().showModal();

// Keys without Ctrl, Alt or Meta, outside of fields.
function press(event) {
  if (isOff() || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (event.target.closest?.(FIELDS) || dialog().open) return;
  const view = titledViews()[Number(event.key) - 1];
  const field = document.querySelector('#find');
  if (event.key === '?') openHelp();
  else if (event.key === '/' && field) field.focus();
  else if (view) location.hash = `#/${view[0]}`;
  else return;
  event.preventDefault();
}

export const listen = () => addEventListener('keydown', press);

const KEYS = [
  ['?', 'this help'],
  ['/', 'to the field Find'],
  ['Tab, Shift + Tab', 'to the next or the previous control'],
  ['Enter, Space', 'press a button, follow a link, open a node of the map'],
  ['Arrows, Home, End', 'move between nodes of the map'],
  ['Escape', 'close a node, or this help'],
  ['Alt + ←', 'back to the view before'],
];

export const help = () => html`<dialog id="help" aria-labelledby="help-title">
  <h2 id="help-title">Help</h2>
  <p>
    The console shows what <code>tutti status</code>, <code>queue</code>, <code>explain</code> and
    <code>plan</code> say. It changes nothing in the cluster. The address holds the view: bookmark it.
  </p>
  <table>
    <caption class="unseen">Keys</caption>
    <thead><tr><th scope="col">Key</th><th scope="col">Does</th></tr></thead>
    <tbody>
      ${titledViews().map(([, [title]], i) => html`<tr><td><kbd>${i + 1}</kbd></td><td>${title}</td></tr>`)}
      ${KEYS.map(([key, does]) => html`<tr><td><kbd>${key}</kbd></td><td>${does}</td></tr>`)}
    </tbody>
  </table>
  <p>
    <label class="row"
      ><input
        type="checkbox"
        .checked=${!isOff()}
        @change=${(event) =>
          event.target.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, '1')}
      />
      Keys of one character (1 to ${titledViews().length}, / and ?) are on</label
    >
  </p>
  <button class="main" @click=${() => dialog().close()}>Close</button>
  <p class="quiet">${state.about ? `Planner: ${Object.values(state.about.settings).join(', ')}.` : ''}</p>
</dialog>`;
