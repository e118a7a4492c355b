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

export const nodeLink = (node) =>
  html`<a href=${`#/map?node=${encodeURIComponent(node)}`}>${name(node)}</a>`;

// Made once: Intl takes longer to make a format than to use it.
const digits = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });

export const count = (n, noun) => `${digits.format(n)} ${noun}${n === 1 ? '' : 's'}`;

export function amount(unit, n) {
  if (unit === 'cpu') return `${+(n / 1000).toFixed(1)} CPU`;
  return `${digits.format(n)} ${visible(unit).split('/').pop()}`;
}

const STEPS = [[86400 * 2, 86400, 'd'], [7200, 3600, 'h'], [120, 60, 'm'], [0, 1, 's']];

export function age(since, now) {
  const seconds = Math.max(0, Math.round(now - since));
  const [, size, unit] = STEPS.find(([least]) => seconds >= least);
  return `${Math.floor(seconds / size)} ${unit}`;
}

export const moment = (seconds) => dates.format(new Date(seconds * 1000));

// Of a time as Kubernetes writes it; one that cannot be read stays as it is.
export const momentOf = (text) =>
  Number.isNaN(Date.parse(text)) ? visible(text) : dates.format(new Date(text));

export const share = (n) =>
  n === null ? 'unknown' : `${(100 * n).toFixed(n && n < 0.1 ? 1 : 0)} %`;

export function duration(seconds) {
  if (seconds >= 120) return `${digits.format(Math.round(seconds / 60))} min`;
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return seconds > 0 && seconds < 0.0001 ? '< 0.1 ms' : `${+(1000 * seconds).toPrecision(2)} ms`;
}

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
