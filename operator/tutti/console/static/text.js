// Names, amounts, ages and colours. Every name is text: what cannot be seen in it is spelt out.

import { html } from './vendor/lit-html.js';

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export const visible = (text) =>
  String(text).replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const name = (text) => html`<bdi class="name">${visible(text)}</bdi>`;

// A gang of a command's answer, as addresses and the map name it.
export const nameOf = ({ gang, kind }) => (kind === 'PodGroup' ? gang : `${gang}/${kind}`);

export const gangLink = (gang) =>
  html`<a href=${`#/gang/${encodeURIComponent(gang)}`}>${name(gang)}</a>`;

// A gang as dumps and claims name it, such as ml/a (Pod).
export function linkOfText(text) {
  const [, gang, kind] = /^(.*) \((\w+)[^()]*\)$/.exec(text) ?? [null, text, 'PodGroup'];
  return gangLink(nameOf({ gang, kind }));
}

export const nodeLink = (node) =>
  html`<a href=${`#/map?node=${encodeURIComponent(node)}`}>${name(node)}</a>`;

// Made once: Intl takes longer to make a format than to use it.
const digits = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const collator = new Intl.Collator('en', { numeric: true });

// Compares names, with numbers in them by their value: gpu-2 comes before gpu-10.
export const compareNames = (a, b) => collator.compare(a, b);

// Sorts rows by name. Names are compared only if a new one is among them: of 12,000 names, that
// takes a tenth of a second.
export function sorterByName(nameOf) {
  let ranks = new Map();
  return (rows) => {
    if (!rows.every((row) => ranks.has(nameOf(row)))) {
      ranks = new Map(rows.map(nameOf).sort(compareNames).map((name, i) => [name, i]));
    }
    return [...rows].sort((a, b) => ranks.get(nameOf(a)) - ranks.get(nameOf(b)));
  };
}

export const number = (n) => digits.format(n);

export const count = (n, noun) => `${digits.format(n)} ${noun}${n === 1 ? '' : 's'}`;

export function amount(unit, n) {
  if (unit === 'cpu') return `${+(n / 1000).toFixed(1)} CPU`;
  return `${digits.format(n)} ${visible(unit).split('/').pop()}`;
}

const STEPS = [[86400 * 2, 86400, 'd'], [7200, 3600, 'h'], [120, 60, 'min'], [0, 1, 's']];

export function age(since, now) {
  const seconds = Math.max(0, Math.round(now - since));
  const [, size, unit] = STEPS.find(([least]) => seconds >= least);
  return `${Math.floor(seconds / size)} ${unit}`;
}

const timeOf = (date, text) =>
  html`<time datetime=${date.toISOString()} title=${date.toISOString()}>${text}</time>`;

// A moment in the time zone of the browser; the tooltip has it in UTC.
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? 'unknown' : timeOf(date, dates.format(date));
}

// Of a time as Kubernetes writes it; one that cannot be read stays as it is.
export const momentOf = (text) =>
  Number.isNaN(Date.parse(text)) ? visible(text) : moment(Date.parse(text) / 1000);

// How long ago something was; the tooltip has the moment.
export function ago(since, now) {
  const date = new Date(since * 1000);
  return Number.isNaN(date.getTime()) ? '–' : timeOf(date, age(since, now));
}

export const share = (n) =>
  n === null ? 'unknown' : `${(100 * n).toFixed(n && n < 0.1 ? 1 : 0)} %`;

export function duration(seconds) {
  if (seconds >= 120) return `${digits.format(Math.round(seconds / 60))} min`;
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return seconds > 0 && seconds < 0.0001 ? '< 0.1 ms' : `${+(1000 * seconds).toPrecision(2)} ms`;
}

const FACTORS = { m: 1 / 1000, '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };

// A quantity as a number, near enough for a bar.
export function numberOf(quantity = '0') {
  const [, amountOf, unit] = /^([\d.]+)(m|[KMGTPE]i)?$/.exec(quantity) ?? [null, '0', ''];
  return Number(amountOf) * FACTORS[unit ?? ''];
}

// Cut off after one digit, as `tutti status` does: what is free is never said to be more.
const cut = (n) => digits.format(Math.floor(10 * n + 1e-6) / 10);

// A quantity in a unit that people read easily; bytes as Kubernetes writes them: 1.5 Ti.
export function rounded(quantity) {
  const n = numberOf(quantity);
  if (!/i$/.test(quantity)) return cut(n);
  const [unit, factor] = Object.entries(FACTORS).findLast(([, size]) => size <= n) ?? ['', 1];
  return `${cut(n / factor)} ${unit}`;
}

// A button that copies a text.
export function copy(text, what = 'the name') {
  const click = async ({ currentTarget: button }) => {
    const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    button.textContent = isCopied ? 'Copied' : 'Copying is not allowed';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  };
  return html`<button class="copy" aria-label=${`Copy ${what}`} title=${`Copy ${what}`} @click=${click} .textContent=${'Copy'}></button>`;
}

const isPlain = (word) => /^[\w./:=,@%+-]+$/.test(word);
export const quoted = (word) => (isPlain(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// Commands for a terminal, each with a button that copies it.
export const commands = (lines) => html`<details>
  <summary>In a terminal</summary>
  <ul class="commands">
    ${lines.map((line) => html`<li><code>${visible(line)}</code> ${copy(line, 'the command')}</li>`)}
  </ul>
</details>`;

export const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches;

// The colour of a gang, the same in all views: neighbours in the order of first sight differ most.
const colours = new Map();
export function colour(gang, dark) {
  let found = colours.get(gang);
  if (!found) {
    const n = colours.size;
    const hue = Math.round(n * 137.508 + 210) % 360;
    const light = (n % 3) * 10;
    found = [`hsl(${hue} 58% ${38 + light}%)`, `hsl(${hue} 52% ${46 + light}%)`];
    colours.set(gang, found);
  }
  return found[dark ? 1 : 0];
}

export const colourOfQueue = (queue, dark) => colour(`queue ${queue}`, dark);

export const problem = (text) => html`<p class="problem" role="alert">${visible(text)}</p>`;
