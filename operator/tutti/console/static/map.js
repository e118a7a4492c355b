// The map of the cluster: a tile for each node, in groups, drawn on one canvas.
// A row is [name, kind, labels, flag, unit, capacity, others, [[gang, status, amount, members]…]].

import { amount, colour, colourOfQueue, compareNames, count, isDark, visible } from './text.js';

const HEAD = 26;
const GAP = 2;
// Tiles of a map of at most so many nodes: width and height.
const SIZES = [[24, 196, 58], [240, 92, 32], [1200, 36, 20], [4000, 20, 14], [Infinity, 11, 9]];
const TALLEST = 58; // pixels of a tile, where few nodes are shown
const FEW = 480; // pixels that few nodes may take together
const LARGEST = 12_000; // pixels of a canvas in one direction that every browser can draw
const MOST_TILES = 1500; // drawn in one frame, where nobody looks
export const STATUS_WORDS = {
  bound: 'bound',
  reserved: 'reserved',
  planned: 'would start here',
  ending: 'ends so that another gang starts',
  claimed: 'starts here once others have ended',
};
const FLAGS = { notready: 'not ready', cordoned: 'cordoned' };

export const rowName = (row) => row[0];
const isShared = ([, status]) => status === 'ending' || status === 'claimed';

// A gang that starts once others have ended takes their room.
export function freeOf([, , , , , capacity, others, holds]) {
  const sums = { ending: 0, claimed: 0, own: 0 };
  for (const hold of holds) sums[isShared(hold) ? hold[1] : 'own'] += hold[2];
  return Math.max(0, capacity - others - sums.own - Math.max(sums.ending, sums.claimed));
}

// A node in words, for tooltips and screen readers.
export function sentences(row) {
  const [node, kind, , flag, unit, capacity, others, holds] = row;
  const head = [visible(node), kind && visible(kind), FLAGS[flag]].filter(Boolean).join(', ');
  const lines = holds.map(
    ([gang, status, n, members]) =>
      `${visible(gang)}: ${count(members, 'member')}, ${amount(unit, n)}, ${STATUS_WORDS[status]}`,
  );
  if (others) lines.push(`other pods: ${amount(unit, others)}`);
  return [head, ...lines, `free: ${amount(unit, freeOf(row))} of ${amount(unit, capacity)}`];
}

// The queue whose gangs have most of a node; ``queues`` has the queue of each gang.
function queueOf(row, queues) {
  const amounts = new Map();
  for (const [gang, , n] of row[7]) {
    const queue = queues.get(gang);
    if (queue) amounts.set(queue, (amounts.get(queue) ?? 0) + n);
  }
  const [most] = [...amounts].sort((a, b) => b[1] - a[1]);
  return most ? most[0] : 'no queue';
}

export function groupOf(row, by, labels, queues) {
  if (by === 'queue') return queueOf(row, queues);
  const at = labels.indexOf(by);
  return at < 0 ? row[1] || row[4] : row[2][at] || 'none';
}

// Rows in groups, and how to put a newer row in the place of the one before.
export function grouped(rows, by, labels, queues) {
  const groups = new Map();
  for (const row of rows) {
    const value = groupOf(row, by, labels, queues);
    const group = groups.get(value);
    if (group) group.push(row);
    else groups.set(value, [row]);
  }
  const sorted = [...groups]
    .sort(([a], [b]) => compareNames(a, b))
    .map(([title, found]) => ({
      title,
      rows: found.sort((a, b) => compareNames(a[0], b[0])),
    }));
  let places;
  const place = (row) => {
    places ??= new Map(sorted.flatMap(({ rows: own }) => own.map((one, i) => [one[0], [own, i]])));
    const [own, i] = places.get(row[0]);
    own[i] = row;
  };
  return { groups: sorted, place };
}

class ClusterMap extends HTMLElement {
  #scene = { groups: [], colour: 'gang' };
  #blocks = []; // of groups: where their tiles are
  #drawn = []; // the rows of the tiles, as they were drawn; null: not yet
  #total = 0; // how many tiles there are
  #tones = null; // colours of the theme; null: everything is to be drawn again
  #rings = []; // what is drawn on the overlay
  #hover = -1;
  #canvas;
  #overlay;
  #tip;
  #words;
  #isQueued = false;

  // What is on the canvas stays there while the element is out of the page.
  connectedCallback() {
    if (!this.#canvas) this.#build();
    this.resizing = new ResizeObserver(() => {
      if (this.clientWidth !== this.size?.width) this.redraw();
    });
    this.redraw = () => {
      this.#tones = null;
      this.#queue();
    };
    this.resizing.observe(this);
    this.theme = matchMedia('(prefers-color-scheme: dark)');
    this.theme.addEventListener('change', this.redraw);
    if (this.#tones && this.#tones.dark !== isDark()) this.#tones = null;
    this.#queue();
  }

  disconnectedCallback() {
    this.resizing.disconnect();
    this.theme.removeEventListener('change', this.redraw);
    if (this.#canvas) this.#mark(-1);
  }

  // {groups, colour: gang, queue or use, queues: by gang, gang: the one to stress, node: the chosen}
  set scene(scene) {
    const isSame = ['groups', 'colour', 'queues', 'gang'].every((key) => scene[key] === this.#scene[key]);
    if (!isSame) this.#tones = null;
    this.#scene = scene;
    this.#queue();
  }

  // Whether the newest scene can be seen in the window.
  get isDrawn() {
    return this.#tones !== null && this.#drawn.length > 0;
  }

  #row(index) {
    const block = this.#blocks.findLast((one) => one.first <= index);
    return block?.group.rows[index - block.first];
  }

  #build() {
    const add = (tag, name) => {
      const made = document.createElement(tag);
      made.className = name;
      this.append(made);
      return made;
    };
    this.#canvas = add('canvas', 'tiles');
    this.#overlay = add('canvas', 'marks');
    this.#overlay.tabIndex = 0;
    this.#overlay.setAttribute('role', 'application');
    this.#overlay.setAttribute('aria-roledescription', 'map');
    this.#tip = add('div', 'tip');
    this.#tip.setAttribute('aria-hidden', 'true');
    this.#words = add('div', 'unseen');
    this.#words.setAttribute('aria-live', 'polite');
    this.#overlay.addEventListener('pointermove', (event) => this.#point(event));
    this.#overlay.addEventListener('pointerleave', () => this.#mark(-1));
    this.#overlay.addEventListener('blur', () => this.#mark(-1));
    this.#overlay.addEventListener('click', (event) => {
      this.#point(event);
      this.#choose();
    });
    this.#overlay.addEventListener('keydown', (event) => this.#key(event));
  }

  #queue() {
    if (this.#isQueued) return;
    this.#isQueued = true;
    requestAnimationFrame(() => {
      this.#isQueued = false;
      if (!this.isConnected) return;
      if (!this.#tones) {
        this.#arrange();
        this.#begin();
      }
      if (this.#drawTiles()) this.#queue();
      this.#mark(this.#hover < this.#total ? this.#hover : -1);
    });
  }

  #arrange() {
    const width = Math.max(100, this.clientWidth);
    const total = this.#scene.groups.reduce((sum, group) => sum + group.rows.length, 0);
    this.#total = total;
    const [, wide, high] = SIZES.find(([most]) => total <= most);
    const columns = Math.max(1, Math.floor((width + GAP) / (wide + GAP)));
    const tile = columns * (wide + GAP) > width - wide ? (width + GAP) / columns - GAP : wide;
    this.#blocks = [];
    this.#drawn = new Array(total).fill(null);
    const lines = this.#scene.groups.reduce((n, one) => n + Math.ceil(one.rows.length / columns), 0);
    const tall = wide < 80 ? high : Math.max(high, Math.min(TALLEST, Math.floor(FEW / lines)));
    let [top, first] = [0, 0];
    for (const group of this.#scene.groups) {
      this.#blocks.push({ group, top, first, columns, tile, high: tall });
      first += group.rows.length;
      top += HEAD + Math.ceil(group.rows.length / columns) * (tall + GAP) + 10;
    }
    this.size = { width, height: Math.max(60, top) };
    this.#overlay.setAttribute(
      'aria-label',
      `Map of ${count(total, 'node')} in ${count(this.#blocks.length, 'group')}. ` +
        'Arrow keys move between nodes, Enter opens one.',
    );
  }

  #prepare(canvas) {
    const { width, height } = this.size;
    const scale = Math.min(devicePixelRatio || 1, LARGEST / width, LARGEST / height);
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.textBaseline = 'middle';
    return pen;
  }

  #place(index) {
    const block = this.#blocks.findLast((one) => one.first <= index);
    const at = index - block.first;
    return [
      (at % block.columns) * (block.tile + GAP),
      block.top + HEAD + Math.floor(at / block.columns) * (block.high + GAP),
      block.tile,
      block.high,
    ];
  }

  #begin() {
    const pen = (this.pen = this.#prepare(this.#canvas));
    this.marker = this.#prepare(this.#overlay);
    this.#rings = [];
    const style = getComputedStyle(this);
    const tone = (which) => style.getPropertyValue(`--${which}`).trim();
    const tones = (this.#tones = {
      dark: isDark(),
      ...Object.fromEntries(
        ['text', 'free', 'others', 'bound', 'reserved', 'planned', 'faint', 'bad', 'page'].map(
          (which) => [which, tone(which)],
        ),
      ),
    });
    pen.fillStyle = tones.text;
    pen.font = '600 13px system-ui, sans-serif';
    for (const block of this.#blocks) {
      const title = `${visible(block.group.title)} · ${count(block.group.rows.length, 'node')}`;
      pen.fillText(title, 0, block.top + HEAD / 2, this.size.width);
    }
  }

  // Draws the tiles whose rows are new: all that can be seen, and some of the others; answers
  // whether more are left.
  #drawTiles() {
    const top = this.#canvas.getBoundingClientRect().top;
    let left = MOST_TILES;
    let isMore = false;
    for (const { group, first, columns, tile, high, top: begin } of this.#blocks) {
      for (let i = 0; i < group.rows.length; i += 1) {
        const row = group.rows[i];
        const before = this.#drawn[first + i];
        if (before === row) continue;
        const x = (i % columns) * (tile + GAP);
        const y = begin + HEAD + Math.floor(i / columns) * (high + GAP);
        const isSeen = top + y + high > 0 && top + y < innerHeight;
        if (!isSeen && left <= 0) {
          isMore = true;
          continue;
        }
        left -= 1; // what is seen comes first: a frame with much of it draws nothing else
        if (before) this.pen.clearRect(x - 0.5, y, tile + 1, high);
        this.#drawn[first + i] = row;
        this.#tile(this.pen, row, [x, y, tile, high], this.#tones);
      }
    }
    return isMore;
  }

  #tile(pen, row, [x, y, w, h], tones) {
    const [node, , , flag, , capacity, others, holds] = row;
    const label = w >= 80 ? 14 : 0;
    const body = h - label;
    const scale = w / Math.max(capacity, 1);
    pen.fillStyle = tones.free;
    pen.fillRect(x, y + label, w, body);
    let at = x;
    const part = (size, fill, status) => {
      const wide = Math.min(Math.max(size * scale, 1), x + w - at);
      if (wide <= 0) return;
      if (status === 'ending' || status === 'claimed') {
        this.#shared(pen, [at, y + label, wide, body], fill, status);
        at += wide;
        return;
      }
      pen.fillStyle = fill;
      if (status === 'bound' || status === 'others') pen.fillRect(at, y + label, wide, body);
      else {
        pen.globalAlpha = 0.45;
        pen.fillRect(at, y + label, wide, body);
        pen.globalAlpha = 1;
        pen.fillRect(at, y + h - 3, wide, 3);
        if (status === 'planned') pen.fillRect(at, y + label, wide, 2);
      }
      at += wide;
    };
    if (others > 0) part(others, tones.others, 'others');
    const held = ([gang, status, size]) => {
      const isFaint = this.#scene.gang && this.#scene.gang !== gang;
      const own = this.#fill(gang, status, tones);
      part(size, isFaint ? tones.faint : own, status);
    };
    for (const hold of holds) if (!isShared(hold)) held(hold);
    const begin = at; // those that end, and below them those that take their room
    for (const which of ['ending', 'claimed']) {
      at = begin;
      for (const hold of holds) if (hold[1] === which) held(hold);
    }
    if (flag) {
      pen.strokeStyle = tones.bad;
      pen.lineWidth = 1.5;
      pen.strokeRect(x + 0.75, y + label + 0.75, w - 1.5, body - 1.5);
      pen.beginPath();
      pen.moveTo(x, y + h);
      pen.lineTo(x + w, y + label);
      pen.stroke();
    }
    if (label) {
      pen.fillStyle = tones.text;
      pen.font = '11px system-ui, sans-serif';
      pen.fillText(fitted(pen, visible(node), w), x, y + label / 2);
    }
  }

  // A gang that ends has the upper half, with lines across; the gang that starts has the lower.
  #shared(pen, [x, y, w, h], fill, status) {
    const half = Math.floor(h / 2);
    const [top, high] = status === 'ending' ? [y, half] : [y + half, h - half];
    pen.save();
    pen.beginPath();
    pen.rect(x, top, w, high);
    pen.clip();
    pen.fillStyle = fill;
    if (status === 'claimed') pen.globalAlpha = 0.45;
    pen.fillRect(x, top, w, high);
    pen.globalAlpha = 1;
    if (status === 'claimed') pen.fillRect(x, top + high - 3, w, 3);
    else {
      pen.strokeStyle = this.#tones.page;
      pen.lineWidth = 2;
      pen.beginPath();
      for (let at = -high; at < w; at += 8) {
        pen.moveTo(x + at, top + high);
        pen.lineTo(x + at + high, top);
      }
      pen.stroke();
    }
    pen.restore();
  }

  #fill(gang, status, tones) {
    const { colour: by, queues } = this.#scene;
    if (by === 'use') return tones[{ ending: 'bad', claimed: 'planned' }[status] ?? status];
    if (by !== 'queue') return colour(gang, tones.dark);
    const queue = queues.get(gang);
    return queue ? colourOfQueue(queue, tones.dark) : tones.others;
  }

  #at(event) {
    const box = this.#overlay.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const block = this.#blocks.findLast((one) => one.top <= y);
    if (!block || y < block.top + HEAD) return -1;
    const column = Math.floor(x / (block.tile + GAP));
    const line = Math.floor((y - block.top - HEAD) / (block.high + GAP));
    const at = line * block.columns + column;
    return column < block.columns && at < block.group.rows.length ? block.first + at : -1;
  }

  #point(event) {
    this.#mark(this.#at(event), event);
  }

  #mark(index, event) {
    this.#hover = index;
    const pen = this.marker;
    if (!pen || !this.#tones) return [];
    for (const [x, y, w, h] of this.#rings) pen.clearRect(x - 4, y - 4, w + 8, h + 8);
    this.#rings = [];
    const ring = (at, width) => {
      const [x, y, w, h] = this.#place(at);
      pen.strokeStyle = this.#tones.text;
      pen.lineWidth = width;
      pen.strokeRect(x - 1, y - 1, w + 2, h + 2);
      this.#rings.push([x, y, w, h]);
    };
    const { node } = this.#scene;
    const chosen = node ? this.#drawn.findIndex((row) => row?.[0] === node) : -1;
    if (chosen >= 0) ring(chosen, 3);
    this.#tip.hidden = index < 0;
    if (index < 0) {
      this.#words.textContent = '';
      return [];
    }
    ring(index, 2);
    const told = sentences(this.#row(index));
    this.#tip.replaceChildren(
      ...told.map((line) => {
        const made = document.createElement('div');
        made.textContent = line;
        return made;
      }),
    );
    const [x, y, w, h] = this.#place(index);
    const left = Math.min(event ? x + w / 2 : x, this.size.width - this.#tip.offsetWidth);
    this.#tip.style.left = `${Math.max(0, left)}px`;
    this.#tip.style.top = `${y + h + 6}px`;
    return told;
  }

  // As #mark, and said to those who do not see it.
  #tell(index) {
    this.#words.textContent = this.#mark(index).join('. ');
  }

  #key(event) {
    const block = this.#blocks.findLast((one) => one.first <= Math.max(0, this.#hover));
    const steps = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: block?.columns,
      ArrowUp: -block?.columns,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key === 'Enter') this.#choose();
    else if (event.key === 'Escape') this.#mark(-1);
    else if (event.key in steps && block) {
      const last = this.#total - 1;
      this.#tell(this.#hover < 0 ? 0 : Math.min(last, Math.max(0, this.#hover + steps[event.key])));
    } else return;
    event.preventDefault();
  }

  #choose() {
    if (this.#hover < 0) return;
    const detail = this.#row(this.#hover)[0];
    this.dispatchEvent(new CustomEvent('node-chosen', { detail, bubbles: true }));
  }
}

function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) least = middle;
    else most = middle - 1;
  }
  return `${text.slice(0, least)}…`;
}

customElements.define('cluster-map', ClusterMap);

// The map of a view: its canvas is drawn once, and shown again when the view is.
const maps = new Map();
export function mapOf(view, scene, choose) {
  let found = maps.get(view);
  if (!found) {
    maps.set(view, (found = document.createElement('cluster-map')));
    found.addEventListener('node-chosen', (event) => found.choose?.(event.detail));
  }
  found.scene = scene;
  found.choose = choose;
  return found;
}
