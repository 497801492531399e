// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { ask, notify } from './ask.js';
import { byId, setData, setText } from './dom.js';
import { cloudNow, setClock } from './format.js';
import { applyCalls, applyCounters, clearCalls, initCalls, showRate } from './calls.js';
import { applyServers, initServers } from './servers.js';
import { initDetails, openDetails, refreshDetails } from './details.js';
import { applyFaults, initFaults, loadPresets } from './faults.js';

const pollInterval = 1000; // ms from an answer to the next request

let knownCalls = 0; // of the mock's callsTotal
let isLive = false;

function showConnection(state, text) {
  const connection = byId('connection');
  setData(connection, 'state', state);
  setText(connection, text);
}

function apply(state) {
  setClock(state.now);
  const nics = new Map(state.nics.map((nic) => [nic.id, nic]));
  const volumes = new Map(state.volumes.map((volume) => [volume.id, volume]));
  const found = (ids, all) => (ids ?? []).map((id) => all.get(id)).filter(Boolean);
  applyServers(state.servers.map((server) => ({
    ...server, nics: found(server.nicIds, nics), volumes: found(server.volumeIds, volumes),
  })));
  // A mock that was started again counts from 0.
  if (knownCalls === 0 || state.callsTotal < knownCalls) clearCalls();
  const fresh = state.callsTotal < knownCalls ? state.callsTotal : state.callsTotal - knownCalls;
  applyCalls(state.lastCalls.slice(Math.max(state.lastCalls.length - fresh, 0)));
  knownCalls = state.callsTotal;
  applyCounters(state, cloudNow());
  applyFaults(state.faults);
  refreshDetails();
}

/** poll reads the state again and again. An error of the page's own script must not end it. */
async function poll() {
  try {
    let state;
    try {
      state = await ask('GET', 'admin/state');
    } catch {
      knownCalls = 0;
      isLive = false;
      showConnection('lost', 'connection lost, trying again');
      return;
    }
    apply(state);
    showConnection('live', 'live');
    if (!isLive) loadPresets().catch((failure) => notify(failure.message, true)); // it may be another mock
    isLive = true;
  } finally {
    setTimeout(poll, pollInterval);
  }
}

initServers(openDetails);
initCalls();
initDetails();
initFaults();
setInterval(() => showRate(cloudNow()), 1000);
poll();
