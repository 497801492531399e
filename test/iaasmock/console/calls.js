// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { byId, el, setText } from './dom.js';
import { clockTime, number, took } from './format.js';
import { serverById } from './servers.js';

const kept = 200;
const held = []; // calls that came during the pause
let paused = false;

const filters = {
  all: () => true,
  writes: (call) => call.method !== 'GET',
  failed: (call) => call.status === 0 || call.status >= 400,
};

/** initCalls sets up the list. */
export function initCalls() {
  const list = byId('call-list');
  byId('call-filter').addEventListener('change', (event) => {
    list.dataset.show = event.target.value;
    for (const node of list.children) node.hidden = !filters[event.target.value](node.call);
  });
  byId('pause').addEventListener('click', () => {
    paused = !paused;
    byId('pause').setAttribute('aria-pressed', paused);
    if (!paused) applyCalls(held.splice(0));
    showPause();
  });
}

/** clearCalls removes all calls: the next ones may come from another mock. */
export function clearCalls() {
  held.length = 0;
  samples.length = 0;
  byId('call-list').replaceChildren();
  byId('no-calls').hidden = false;
  showPause();
}

/** applyCalls adds new calls at the top. They come with the oldest first. */
export function applyCalls(calls) {
  if (calls.length === 0) return;
  if (paused) {
    held.push(...calls);
    held.splice(0, held.length - kept);
    showPause();
    return;
  }
  const list = byId('call-list');
  const fits = filters[byId('call-filter').value];
  const nodes = calls.slice(-kept).reverse().map((call) => callNode(call, fits));
  list.prepend(...nodes);
  while (list.childElementCount > kept) list.lastElementChild.remove();
  byId('no-calls').hidden = true;
}

function showPause() {
  const waiting = held.length === kept ? `${kept}+` : held.length;
  setText(byId('pause'), paused ? `Resume (${waiting} new)` : 'Pause');
}

function callNode(call, fits) {
  const code = el('span', { className: 'code', textContent: call.status || 'dropped' });
  code.dataset.kind = call.status === 0 || call.status >= 500 ? 'bad' : call.status >= 400 ? 'warn' : 'good';
  const query = new URLSearchParams(call.query ?? {}).toString();
  const node = el('li', { title: `${call.method} ${call.path}${query && '?'}${query}\n${call.requestId}` },
    el('time', { textContent: clockTime(new Date(call.startedAt)), dateTime: call.startedAt }),
    code,
    el('span', { className: 'operation', textContent: call.faults ? `${call.operation} (fault)` : call.operation }),
    el('span', { className: 'target' }, el('bdi', { textContent: targetOf(call) })),
    el('span', { className: 'took', textContent: took(call.duration) }));
  if (call.faults) node.dataset.fault = true;
  node.call = call;
  node.hidden = !fits(call);
  return node;
}

/** targetOf is the short name of a call's target: the server's name if it is known. */
function targetOf(call) {
  if (call.operation === 'Unknown') return `${call.method} ${call.path}`;
  const [, serverId] = call.path.match(/\/servers\/([^/]+)/) ?? [];
  if (serverId) return serverById(serverId)?.name ?? serverId;
  const selector = call.query?.label_selector?.[0];
  if (selector) return selector;
  const tail = call.path.match(/\/regions\/[^/]+\/(.+)/)?.[1] ?? '';
  return tail.includes('/') ? tail : '';
}

const samples = []; // numbers of calls with their time, of the last 5 s

/** applyCounters shows the state's counters at the top of the page and the calls by operation. */
export function applyCounters(state, now) {
  samples.push([now, state.callsTotal]);
  while (samples.length > 2 && samples[0][0] < now - 5000) samples.shift();
  const { history } = state;
  show(byId('counters'), [
    ['servers made', history.serversCreated], ['servers gone', history.serversDeleted],
    ['NICs', state.nics.length], ['volumes', state.volumes.length], ['API calls', state.callsTotal],
  ]);
  show(byId('operations'), Object.entries(state.calls).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)));
}

/** showRate shows the calls per second in the last 5 s. */
export function showRate(now) {
  const recent = samples.filter(([at]) => at >= now - 5000);
  const [from, to] = [recent[0], recent.at(-1)];
  const rate = recent.length > 1 && to[0] > from[0] ? (to[1] - from[1]) / Math.max((now - from[0]) / 1000, 1) : 0;
  setText(byId('call-rate'), `${rate < 10 ? rate.toFixed(1) : Math.round(rate)} a second`);
}

/** show updates a list of names and numbers, and changes only the nodes that differ. */
function show(list, entries) {
  const known = new Map([...list.children].map((node) => [node.dataset.name, node]));
  for (const [name, value] of entries) {
    let node = known.get(name);
    known.delete(name);
    if (!node) {
      node = el('div', {}, el('dt', { textContent: name }), el('dd'));
      node.dataset.name = name;
      list.append(node);
    }
    setText(node.lastElementChild, number(value));
  }
  for (const node of known.values()) node.remove();
}
