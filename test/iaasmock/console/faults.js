// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { ask, attempt } from './ask.js';
import { byId, el, setText } from './dom.js';
import { ago, cloudNow, number } from './format.js';

const active = new Map(); // nodes by fault ID
const refreshEvery = 1000;
let reading = false;
let again = false;

/** initFaults makes a button of each preset the mock knows. */
export async function initFaults() {
  byId('clear-faults').addEventListener('click', async () => {
    await attempt('All faults are cleared.', () => ask('DELETE', 'admin/faults'));
    byId('presets').querySelector('button')?.focus();
    refreshFaults();
  });
  setInterval(showEnds, 1000);
  const { items } = await ask('GET', 'admin/faults/presets');
  byId('presets').replaceChildren(...items.map(presetButton));
}

function presetButton(preset) {
  const button = el('button', { type: 'button', textContent: preset.name, title: preset.description, 'aria-description': preset.description });
  button.dataset.preset = preset.name;
  button.addEventListener('click', async () => {
    await attempt(`Injected ${preset.name}.`, () => ask('POST', 'admin/faults', { preset: preset.name, ...limits() }));
    refreshFaults();
  });
  return button;
}

/** limits are what the fields say beside the preset. */
function limits() {
  const [count, seconds, server] = ['fault-count', 'fault-seconds', 'fault-server'].map((id) => byId(id).value.trim());
  return {
    ...(count && { count: Number(count) }),
    ...(seconds && { duration: `${seconds}s` }),
    ...(server && { server }),
  };
}

/** refreshFaults reads what is active, at most once a second however often it is asked. */
export async function refreshFaults() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    apply((await ask('GET', 'admin/faults')).items);
  } catch {
    // The stream says that the connection is lost.
  }
  setTimeout(() => {
    reading = false;
    if (again) {
      again = false;
      refreshFaults();
    }
  }, refreshEvery);
}

function apply(faults) {
  const left = new Set(active.keys());
  for (const fault of faults) {
    left.delete(fault.id);
    if (!active.has(fault.id)) add(fault);
    update(active.get(fault.id), fault);
  }
  for (const id of left) remove(id);
  byId('no-faults').hidden = active.size > 0;
  byId('clear-faults').hidden = active.size === 0;
}

function add(fault) {
  const title = titleOf(fault);
  const button = el('button', { type: 'button', textContent: 'Remove', 'aria-label': `Remove ${title}` });
  button.addEventListener('click', async () => {
    await attempt(`Removed ${title}.`, () => ask('DELETE', `admin/faults/${encodeURIComponent(fault.id)}`));
    refreshFaults();
  });
  const entry = { title: el('b', { textContent: title }), what: el('span', { textContent: effectOf(fault) }), hits: el('span', { className: 'count' }), ends: el('span', { className: 'count' }) };
  entry.node = el('li', {}, entry.title, entry.what, entry.hits, entry.ends, button);
  entry.node.dataset.fault = fault.id;
  byId('active-faults').append(entry.node);
  active.set(fault.id, entry);
}

function update(entry, fault) {
  const remaining = fault.remaining ? `, ${number(fault.remaining)} to go` : '';
  setText(entry.hits, `${number(fault.hits ?? 0)} hit${remaining}`);
  entry.endsAt = fault.endsAt && Date.parse(fault.endsAt);
  showEnd(entry);
}

function remove(id) {
  const { node } = active.get(id);
  const held = node.contains(document.activeElement);
  const next = node.nextElementSibling ?? node.previousElementSibling;
  node.remove();
  active.delete(id);
  if (held) (next?.querySelector('button') ?? byId('presets').querySelector('button'))?.focus();
}

function showEnd(entry) {
  setText(entry.ends, entry.endsAt ? `ends in ${ago(entry.endsAt - cloudNow())}` : '');
}

function showEnds() {
  for (const entry of active.values()) showEnd(entry);
}

const titleOf = (fault) => fault.preset || fault.operation || 'any call';

/** effectOf tells the fields of a fault that are its own, shortly. */
function effectOf(fault) {
  const told = new Set(['id', 'preset', 'hits', 'remaining', 'endsAt', 'count', 'duration']);
  return Object.entries(fault).filter(([name, value]) => !told.has(name) && value !== '' && value !== null && value !== false)
    .map(([name, value]) => (value === true ? name : `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`))
    .join(', ');
}
