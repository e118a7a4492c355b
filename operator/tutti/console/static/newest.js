// Rows that the server has: it is asked for what changed since its last answer.

import { draw, state } from './app.js';
import { get } from './server.js';

const RESTS = 3; // times as long as an answer took, before the next question: asking is never all
const REST_AFTER_PROBLEM = 2000; // milliseconds

export class Newest {
  rows = new Map(); // by name
  all = []; // the rows; another array after each answer
  answer = null; // the last answer
  problem = null;
  #isBusy = false;
  #seen = null; // the version of the cluster that was asked for last
  #pause = 0;

  // ``nameOf`` names a row; ``take`` is called with each answer before its rows are taken.
  constructor(path, nameOf, take = () => {}) {
    Object.assign(this, { path, nameOf, take });
  }

  // Asks if the cluster has changed, and answers what is known now.
  ask() {
    const wait = this.#pause - performance.now();
    if (this.#isBusy || this.#seen === state.news.version) return this;
    if (wait > 0) {
      setTimeout(draw, wait);
      return this;
    }
    this.#isBusy = true;
    const begin = performance.now();
    const version = state.news.version;
    get(this.path, { since: this.answer?.version ?? 0 })
      .then((answer) => {
        this.#take(answer);
        this.#seen = version;
        this.problem = null;
      })
      .catch((why) => {
        this.problem = why;
      })
      .finally(() => {
        this.#isBusy = false;
        const took = performance.now() - begin;
        this.#pause = performance.now() + (this.problem ? REST_AFTER_PROBLEM : RESTS * took);
        draw();
      });
    return this;
  }

  #take(answer) {
    this.take(answer, this.rows);
    if (answer.whole) this.rows = new Map();
    for (const gone of answer.gone) this.rows.delete(gone);
    for (const row of answer.rows) this.rows.set(this.nameOf(row), row);
    const isSame = this.answer && !answer.whole && !answer.rows.length && !answer.gone.length;
    if (!isSame) this.all = [...this.rows.values()];
    this.answer = answer;
  }
}
