// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { ask, attempt } from './ask.js';
import { byId, el, setText, showStatus, statusMark } from './dom.js';
import { clockTime, cloudNow, lapse, shortDuration } from './format.js';
import { focusServer, markOpen, serverById } from './servers.js';

let openId;
let shown = ''; // the JSON that the body shows
let scheduled = []; // nodes of scheduled states, with their time

const path = (id) => `admin/servers/${encodeURIComponent(id)}`;

/** initDetails sets up the panel. */
export function initDetails() {
  byId('details-close').addEventListener('click', close);
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && openId && event.target !== byId('find')) close();
  });
  byId('details-actions').addEventListener('submit', (event) => {
    event.preventDefault();
    const errorMessage = byId('fail-message').value;
    attempt('The server is in ERROR.', () => ask('POST', `${path(openId)}/status`, { status: 'ERROR', errorMessage }));
  });
  byId('stop-server').addEventListener('click', () => attempt('The server is INACTIVE.',
    () => ask('POST', `${path(openId)}/status`, { status: 'INACTIVE' })));
  byId('remove-server').addEventListener('click', () => attempt('The server is gone.', () => ask('DELETE', path(openId))));
  wide.addEventListener('change', coverRest);
  setInterval(countDown, 1000);
}

// What the panel covers must not get the keyboard focus.
const wide = matchMedia('(min-width: 1101px)');
function coverRest() {
  const open = openId !== undefined;
  for (const node of document.querySelectorAll('.skips, .top, .faults, .servers')) node.inert = open && !wide.matches;
  byId('calls').inert = open;
}

/** openDetails shows a server and moves the keyboard focus to it. */
export function openDetails(id) {
  openId = id;
  shown = '';
  markOpen(id);
  byId('details-body').replaceChildren();
  byId('details').hidden = false;
  document.body.classList.add('with-details');
  coverRest();
  refreshDetails();
  byId('details-title').focus();
}

function close() {
  const id = openId;
  openId = undefined;
  byId('details').hidden = true;
  document.body.classList.remove('with-details');
  coverRest();
  markOpen(undefined);
  focusServer(id);
}

/** refreshDetails shows the open server as it is now. */
export function refreshDetails() {
  if (!openId) return;
  const server = serverById(openId);
  if (!server) {
    showGone();
    return;
  }
  showHead(server);
  const text = JSON.stringify(server);
  if (text === shown) return;
  shown = text;
  showBody(server);
}

function showHead(server) {
  setText(byId('details-title'), server.name);
  showStatus(byId('details-status'), server.status);
  enable(true, server.status);
}

function showGone() {
  showStatus(byId('details-status'), 'GONE');
  enable(false);
}

function enable(there, status) {
  const held = document.activeElement;
  for (const control of byId('details-actions').elements) control.disabled = !there;
  byId('stop-server').disabled = status !== 'ACTIVE';
  // A control that is disabled while it has the keyboard focus would lose it.
  if (held?.disabled) byId('details-title').focus();
}

function showBody(d) {
  scheduled = [];
  const boot = d.bootVolume;
  byId('details-body').replaceChildren(
    d.errorMessage ? el('p', { className: 'failure', textContent: d.errorMessage }) : '',
    section('Timeline', timeline(d.timeline)),
    section('Server', pairs([
      ['ID', d.id], ['project', d.projectId], ['region', d.region], ['zone', d.availabilityZone],
      ['machine type', d.machineType], ['image', d.imageId],
      ['boot volume', boot && `${boot.size} GB from ${boot.sourceType} ${boot.sourceId}`],
      ['', boot && (boot.deleteOnTermination ? 'deleted with the server' : 'stays when the server goes')],
      ['network', d.networkId], ['key pair', d.keypairName], ['affinity group', d.affinityGroup],
      ['security groups', d.securityGroups?.join('\n')], ['service accounts', d.serviceAccountMails?.join('\n')],
      ['agent', d.agentProvisioned === undefined ? undefined : d.agentProvisioned ? 'provisioned' : 'not provisioned'],
      ['user data', d.userDataSize ? `${d.userDataSize} bytes, not shown` : 'none'],
    ])),
    section('Labels', pairs(Object.entries(d.labels ?? {}).sort())),
    section('Metadata', pairs(Object.entries(d.metadata ?? {}).sort())),
    ...d.nics.map((nic) => section('NIC', pairs([
      ['ID', nic.id], ['IPv4', nic.ipv4], ['IPv6', nic.ipv6], ['MAC', nic.mac], ['network', nic.networkId],
      ['allowed addresses', nic.allowedAddresses?.join('\n')], ['security groups', nic.securityGroups?.join('\n')],
      ['with the server', nic.madeByServer ? 'made for it, deleted with it' : 'stays when the server goes'],
    ]))),
    ...d.volumes.map((volume) => section(boot?.id === volume.id ? 'Boot volume' : 'Volume', pairs([
      ['ID', volume.id], ['name', volume.name], ['size', `${volume.size} GB`], ['class', volume.performanceClass],
      ['zone', volume.availabilityZone], ['state', volume.status],
    ]))),
  );
  countDown();
}

function section(title, content) {
  return content.childElementCount ? el('section', {}, el('h3', { textContent: title }), content) : '';
}

function pairs(entries) {
  return el('dl', { className: 'pairs' }, ...entries.filter(([, value]) => value !== undefined && value !== '')
    .flatMap(([name, value]) => [el('dt', { textContent: name }), el('dd', { textContent: value })]));
}

function timeline(milestones) {
  return el('ol', { className: 'timeline' }, ...milestones.map((m, i) => {
    const at = new Date(m.at);
    const when = el('span', { className: 'quiet' });
    if (m.ahead) scheduled.push([when, at.getTime()]);
    else if (i > 0) when.textContent = `after ${lapse(at - new Date(milestones[i - 1].at))}`;
    const mark = statusMark(m.status);
    const node = el('li', {}, el('time', { textContent: clockTime(at), dateTime: m.at }), mark, when,
      m.errorMessage ? el('span', { className: 'failure', textContent: m.errorMessage }) : '');
    if (m.ahead) node.dataset.ahead = true;
    return node;
  }));
}

function countDown() {
  for (const [node, at] of scheduled) setText(node, `expected in ${shortDuration(Math.max(at - cloudNow(), 0))}`);
}
