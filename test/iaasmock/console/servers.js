// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { byId, el, setData, setText, showStatus, statusMark } from './dom.js';
import { cloudNow, number, shortDuration } from './format.js';

// The label keys by which servers are grouped, below their project. A key that begins with *
// matches every key with that end. ?group=<keys> or the field "group by" changes them.
const defaultGroupKeys = '*/cluster, kubernetes.io/machineclass';

const rows = new Map(); // by server ID
const groups = new Map(); // by key
const projects = new Map(); // by key: the nodes that hold the groups
const statusButtons = new Map();
const onlyStatuses = new Set();
let groupKeys = [];
let find = '';
let openServer;
let marked; // the server whose details are open

/** initServers sets up the list; open is called with a server's ID. */
export function initServers(open) {
  openServer = open;
  const field = byId('group-by');
  field.value = new URLSearchParams(location.search).get('group') ?? defaultGroupKeys;
  groupKeys = splitKeys(field.value);
  field.addEventListener('change', () => regroup(field.value));
  byId('find').addEventListener('input', (event) => {
    find = event.target.value.trim().toLowerCase();
    filterAll();
  });
  const list = byId('groups');
  list.addEventListener('click', (event) => {
    const button = event.target.closest('button.row');
    if (button) openServer(button.dataset.id);
  });
  list.addEventListener('keydown', moveBetweenRows);
  setInterval(showAges, 1000);
}

const splitKeys = (text) => text.split(',').map((key) => key.trim()).filter(Boolean);

function regroup(text) {
  groupKeys = splitKeys(text);
  const url = new URL(location.href);
  if (text.trim() === defaultGroupKeys) url.searchParams.delete('group');
  else url.searchParams.set('group', text.trim());
  history.replaceState(null, '', url);
  const all = [...rows.values()].map((row) => row.server);
  rows.clear();
  groups.clear();
  projects.clear();
  byId('groups').replaceChildren();
  applyServers(all);
}

/** applyServers shows all servers, in order of creation, and removes those that are gone. */
export function applyServers(servers) {
  const there = new Set(servers.map((server) => server.id));
  for (const id of [...rows.keys()]) if (!there.has(id)) removeRow(id);
  for (const server of servers) {
    const row = rows.get(server.id);
    if (row && row.json === JSON.stringify(server)) continue;
    const group = groupOf(server);
    if (row && row.group === group) updateRow(row, server);
    else {
      if (row) removeRow(server.id);
      addRow(server, group);
    }
  }
  for (const [key, group] of groups) {
    if (group.rows.size === 0) {
      group.node.remove();
      groups.delete(key);
      if (group.project.node.childElementCount === 1) {
        group.project.node.remove();
        projects.delete(group.project.key);
      }
    } else if (group.stale) showGroup(group);
  }
  showStatuses();
  showCount();
}

export const serverById = (id) => rows.get(id)?.server;

/** focusServer moves the keyboard focus back to a server, or to the list if it is gone. */
export function focusServer(id) {
  (rows.get(id)?.button ?? byId('servers')).focus();
}

/** markOpen marks the server whose details are open. */
export function markOpen(id) {
  rows.get(marked)?.button.removeAttribute('aria-current');
  rows.get(id)?.button.setAttribute('aria-current', 'true');
  marked = id;
}

function labelOf(labels, key) {
  if (!key.startsWith('*')) return labels[key];
  const found = Object.keys(labels).sort().find((name) => name.endsWith(key.slice(1)));
  return found && labels[found];
}

function groupOf(server) {
  const values = groupKeys.map((key) => labelOf(server.labels ?? {}, key) || undefined);
  const projectKey = `${server.projectId} ${server.region}`;
  const key = JSON.stringify([projectKey, ...values.map((value) => value ?? null)]);
  let group = groups.get(key);
  if (!group) {
    group = makeGroup(key, values);
    group.project = projectOf(projectKey, server);
    insertSorted(group.project.node, groups, group, (other) => other.project === group.project);
  }
  return group;
}

function projectOf(key, server) {
  let project = projects.get(key);
  if (!project) {
    const title = el('h3', { textContent: `project ${server.projectId} in ${server.region}` });
    project = { key, node: el('div', { className: 'project' }, title) };
    insertSorted(byId('groups'), projects, project, () => true);
  }
  return project;
}

/** insertSorted adds an entry to its map and, before its neighbour by key, to its parent. */
function insertSorted(parent, map, entry, sibling) {
  const after = [...map.values()].filter((other) => sibling(other) && other.key > entry.key).sort((a, b) => (a.key < b.key ? -1 : 1))[0];
  map.set(entry.key, entry);
  parent.insertBefore(entry.node, after?.node ?? null);
}

function makeGroup(key, values) {
  const list = el('ul');
  const share = el('span', { className: 'share', 'aria-hidden': 'true' });
  const count = el('span', { className: 'count' });
  const parts = values.map((value, i) => el('span', { className: value ? '' : 'quiet', textContent: value ?? 'no label', title: groupKeys[i] }));
  const title = el('h4', {}, ...parts.flatMap((part, i) => (i === 0 ? [part] : [el('span', { className: 'slash', textContent: '/' }), part])));
  if (parts.length === 0) title.append('all');
  const node = el('details', { className: 'group', open: true }, el('summary', {}, title, count, share), list);
  return { key, node, list, share, count, rows: new Map(), stale: true };
}

function addRow(server, group) {
  const row = makeRow(server, group);
  rows.set(server.id, row);
  group.rows.set(server.id, row);
  group.stale = true;
  // Servers come in order of creation, nearly always.
  let before = null;
  for (let last = group.list.lastElementChild; last && Number(last.dataset.born) > Date.parse(server.createdAt); last = last.previousElementSibling) before = last;
  group.list.insertBefore(row.node, before);
  updateRow(row, server);
}

function makeRow(server, group) {
  const cells = {
    status: statusMark(server.status),
    name: el('span', { className: 'name' }), message: el('span', { className: 'message' }),
    type: el('span', { className: 'wide' }), zone: el('span', { className: 'wide' }),
    address: el('span', { className: 'wide mono' }), age: el('span', { className: 'age' }),
  };
  const button = el('button', { className: 'row', type: 'button' }, cells.status,
    el('span', { className: 'who' }, cells.name, cells.message), cells.type, cells.zone, cells.address, cells.age);
  button.dataset.id = server.id;
  if (server.id === marked) button.setAttribute('aria-current', 'true');
  const node = el('li', {}, button);
  node.dataset.born = Date.parse(server.createdAt);
  return { id: server.id, node, button, cells, group, server };
}

function updateRow(row, server) {
  if (row.server.status !== server.status) row.group.stale = true;
  row.server = server;
  row.json = JSON.stringify(server);
  const { cells } = row;
  showStatus(cells.status, server.status);
  setText(cells.name, server.name);
  setText(cells.message, server.errorMessage ?? '');
  setText(cells.type, server.machineType);
  setText(cells.zone, server.availabilityZone);
  const address = server.nics[0]?.ipv4 ?? server.nics[0]?.ipv6;
  setText(cells.address, address ?? '–');
  setText(cells.age, shortDuration(cloudNow() - Date.parse(server.createdAt)));
  setData(row.button, 'name', server.name);
  setData(row.button, 'status', server.status);
  row.text = [server.name, server.id, address, server.machineType, server.availabilityZone,
    ...Object.entries(server.labels ?? {}).map(([key, value]) => `${key}=${value}`)].join('\n').toLowerCase();
  filter(row);
}

function removeRow(id) {
  const row = rows.get(id);
  if (!row) return;
  const held = document.activeElement === row.button;
  const next = row.node.nextElementSibling ?? row.node.previousElementSibling;
  row.node.remove();
  rows.delete(id);
  row.group.rows.delete(id);
  row.group.stale = true;
  // The keyboard focus must not jump to the top of the page.
  if (held) (next?.firstElementChild ?? byId('servers')).focus();
}

function countStatuses(some) {
  const counts = new Map();
  for (const row of some) counts.set(row.server.status, (counts.get(row.server.status) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
}

function showGroup(group) {
  group.stale = false;
  const counts = countStatuses(group.rows.values());
  setText(group.count, number(group.rows.size));
  group.share.replaceChildren(...counts.map(([status, count]) => {
    const part = el('span');
    part.dataset.status = status;
    part.style.flexGrow = count;
    return part;
  }));
  hideEmpty(group);
}

function showStatuses() {
  const counts = new Map(countStatuses(rows.values()));
  for (const status of counts.keys()) if (!statusButtons.has(status)) addStatusButton(status);
  for (const [status, { button, count }] of statusButtons) {
    setText(count, number(counts.get(status) ?? 0));
    button.hidden = !counts.has(status) && !onlyStatuses.has(status) && document.activeElement !== button;
  }
}

function addStatusButton(status) {
  const count = el('b');
  const button = el('button', { type: 'button', className: 'status-filter', 'aria-pressed': 'false' }, statusMark(status), ' ', count);
  button.addEventListener('click', () => {
    if (!onlyStatuses.delete(status)) onlyStatuses.add(status);
    button.setAttribute('aria-pressed', onlyStatuses.has(status));
    filterAll();
  });
  statusButtons.set(status, { button, count });
  const after = [...statusButtons.keys()].sort().find((other) => other > status);
  byId('statuses').insertBefore(button, statusButtons.get(after)?.button ?? null);
}

function filter(row) {
  const shown = (onlyStatuses.size === 0 || onlyStatuses.has(row.server.status)) && (find === '' || row.text.includes(find));
  if (row.node.hidden === shown) {
    row.node.hidden = !shown;
    row.group.stale = true;
  }
}

function hideEmpty(group) {
  group.node.hidden = [...group.rows.values()].every((row) => row.node.hidden);
  group.project.node.hidden = [...group.project.node.children].every((node) => node.hidden || node.matches('h3'));
}

function filterAll() {
  for (const row of rows.values()) filter(row);
  for (const group of groups.values()) hideEmpty(group);
  showStatuses();
  showCount();
}

function showCount() {
  let shown = 0;
  for (const row of rows.values()) if (!row.node.hidden) shown++;
  setText(byId('shown'), shown === rows.size ? number(rows.size) : `${number(shown)} of ${number(rows.size)}`);
  byId('no-servers').hidden = rows.size > 0;
}

function showAges() {
  const now = cloudNow();
  for (const row of rows.values()) setText(row.cells.age, shortDuration(now - Date.parse(row.server.createdAt)));
}

function moveBetweenRows(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  const step = steps[event.key];
  if (!step || !event.target.matches('button.row')) return;
  const all = [...byId('groups').querySelectorAll('details[open]:not([hidden]) li:not([hidden]) button.row')];
  const to = Math.min(Math.max(all.indexOf(event.target) + step, 0), all.length - 1);
  all[to]?.focus();
  event.preventDefault();
}
