// Talks with the console's own server: the key of this browser, data, and the stream of changes.

const KEY = 'tutti-console-key';
const SILENCE = 25_000; // milliseconds without a word, after which the connection counts as lost
const WAITS = [500, 1000, 2000, 5000];

export class Problem extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// A link of the terminal ends with #token=…, which is good once: it buys the key.
export async function open() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  history.replaceState(null, '', '#/map');
  const response = await fetch('/api/session', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (response.ok) localStorage.setItem(KEY, (await response.json()).key);
}

async function request(path, options = {}) {
  const headers = { 'X-Tutti-Key': localStorage.getItem(KEY) ?? '', ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (problem) {
    if (problem.name === 'AbortError') throw problem;
    throw new Problem('the console does not answer');
  }
  if (response.status === 401 || response.status === 403) {
    throw new Problem(await response.text(), response.status);
  }
  return response;
}

export async function get(path, query = {}) {
  return answer(await request(`${path}?${new URLSearchParams(query)}`));
}

export async function post(path, body) {
  const headers = { 'Content-Type': 'application/json' };
  return answer(await request(path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

async function answer(response) {
  const data = await response.json().catch(() => ({ problem: `HTTP ${response.status}` }));
  if (!response.ok) throw new Problem(data.problem ?? `HTTP ${response.status}`, response.status);
  return data;
}

// Yields each line of a streamed answer, without its end.
async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    yield* parts;
  }
}

// Why a gang waits: tells how many plans were made so far, and answers when all were.
export async function explain(gang, signal, planned) {
  const query = new URLSearchParams({ gang });
  const response = await request(`/api/explain?${query}`, { signal });
  if (!response.ok) await answer(response);
  for await (const line of lines(response)) {
    const told = JSON.parse(line);
    if (told.answer) return told.answer;
    if (told.problem) throw new Problem(told.problem);
    planned(told.plans);
  }
  throw new Problem('the console ended the answer');
}

// Follows the cluster for ever; says when the connection is lost, and goes on by itself.
export async function follow({ changed, still, lost }) {
  for (let failures = 0; ; ) {
    const abort = new AbortController();
    let timer = 0;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE);
    };
    try {
      heard();
      const response = await request('/api/changes', { signal: abort.signal });
      let event = '';
      for await (const line of lines(response)) {
        heard();
        if (line.startsWith('event: ')) event = line.slice(7);
        if (!line.startsWith('data: ')) continue;
        failures = 0;
        (event === 'changed' ? changed : still)(JSON.parse(line.slice(6)));
      }
    } catch (problem) {
      if (problem.status === 401) {
        lost(problem);
        return;
      }
    } finally {
      clearTimeout(timer);
    }
    lost(new Problem('the console does not answer'));
    await new Promise((done) => setTimeout(done, WAITS[Math.min(failures++, WAITS.length - 1)]));
  }
}
