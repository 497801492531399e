// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { ask, attempt } from './ask.js';
import { byId, el, setText } from './dom.js';
import { cloudNow, number, plural, shortDuration } from './format.js';

const active = new Map(); // by fault ID
const presets = new Map(); // by name
// The presets shown without opening More.
const common = ['no-capacity', 'quota-exceeded', 'boot-error', 'stuck-creating', 'stuck-deleting', 'lost-answers',
  'rate-limited', 'unavailable', 'bad-gateway', 'slow', 'brown-out', 'token-down'];

/** initFaults sets up the panel. */
export function initFaults() {
  byId('clear-faults').addEventListener('click', () => attempt('All faults are cleared.', () => ask('DELETE', 'admin/faults')));
  setInterval(showTimes, 1000);
}

/** loadPresets makes a button for each preset of the mock, once. */
export async function loadPresets() {
  if (presets.size > 0) return;
  const { items } = await ask('GET', 'admin/faults/presets');
  for (const preset of items) presets.set(preset.name, preset);
  for (const { node, fault } of active.values()) setText(node.querySelector('.effect'), effectOf(fault));
  const isCommon = (preset) => common.includes(preset.name);
  byId('presets').replaceChildren(...items.filter(isCommon).map(presetButton));
  byId('more-presets').replaceChildren(...items.filter((preset) => !isCommon(preset)).map(presetButton));
}

function presetButton(preset) {
  const button = el('button', { type: 'button', textContent: preset.name, title: preset.description, 'aria-description': preset.description });
  button.dataset.preset = preset.name;
  button.addEventListener('click', () => attempt(`Injected ${preset.name}.`,
    () => ask('POST', 'admin/faults', { preset: preset.name, ...limits() })));
  return button;
}

/** limits returns the fields that are sent beside the preset. */
function limits() {
  const [count, seconds, server] = ['fault-count', 'fault-seconds', 'fault-server'].map((id) => byId(id).value.trim());
  return {
    ...(count && { count: Number(count) }),
    ...(seconds && { duration: `${seconds}s` }),
    ...(server && { server }),
  };
}

/** applyFaults shows all faults, and removes others from the page. */
export function applyFaults(faults) {
  const left = new Set(active.keys());
  for (const fault of faults) {
    left.delete(fault.id);
    if (!active.has(fault.id)) add(fault);
    update(active.get(fault.id), fault);
  }
  for (const id of left) remove(id);
  const held = document.activeElement === byId('clear-faults');
  byId('no-faults').hidden = active.size > 0;
  byId('clear-faults').hidden = active.size === 0;
  if (held && active.size === 0) firstPreset()?.focus();
}

const firstPreset = () => byId('presets').querySelector('button');

function add(fault) {
  const title = fault.name || fault.operation || 'any call';
  const button = el('button', { type: 'button', textContent: 'Remove', 'aria-label': `Remove ${title}` });
  button.addEventListener('click', () => attempt(`Removed ${title}.`,
    () => ask('DELETE', `admin/faults/${encodeURIComponent(fault.id)}`)));
  const entry = { fault, hits: el('span', { className: 'count' }), times: el('span', { className: 'count' }) };
  entry.node = el('li', {}, el('b', { textContent: title }), el('span', { className: 'effect', textContent: effectOf(fault) }),
    entry.hits, entry.times, button);
  entry.node.dataset.fault = title;
  byId('active-faults').append(entry.node);
  active.set(fault.id, entry);
}

function update(entry, fault) {
  const remaining = fault.remaining ? `, ${number(fault.remaining)} to go` : '';
  setText(entry.hits, `${plural(fault.hits, 'hit')}${remaining}`);
  entry.startsAt = Date.parse(fault.startsAt);
  entry.endsAt = Date.parse(fault.endsAt);
  showTime(entry);
}

function remove(id) {
  const { node } = active.get(id);
  const held = node.contains(document.activeElement);
  const next = node.nextElementSibling ?? node.previousElementSibling;
  node.remove();
  active.delete(id);
  // The keyboard focus must not jump to the top of the page.
  if (held) (next?.querySelector('button') ?? firstPreset())?.focus();
}

function showTime({ times, startsAt, endsAt }) {
  const now = cloudNow();
  if (startsAt > now) setText(times, `begins in ${shortDuration(startsAt - now)}`);
  else setText(times, endsAt ? `ends in ${shortDuration(endsAt - now)}` : '');
}

function showTimes() {
  for (const entry of active.values()) showTime(entry);
}

// Fields that effectOf leaves out: shown elsewhere or too long.
const omitted = new Set(['id', 'name', 'hits', 'remaining', 'startsAt', 'endsAt', 'count', 'after', 'duration', 'body', 'contentType']);

/** effectOf describes a fault: its preset's description, and the fields that differ from the preset. */
function effectOf(fault) {
  const preset = presets.get(fault.name);
  const own = Object.entries(fault).filter(([name, value]) => !omitted.has(name) && !same(value, preset?.fault[name]))
    .map(([name, value]) => (value === true ? name : `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`));
  return [preset?.description, ...own].filter(Boolean).join(' ');
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
