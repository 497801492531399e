// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { notify } from './ask.js';
import { byId, setData, setText } from './dom.js';
import { cloudNow, setClock } from './format.js';
import { applyCalls, applyCounters, clearCalls, initCalls, showRate } from './calls.js';
import { applyServers, initServers, othersThan } from './servers.js';
import { initDetails, openDetails, refreshDetails } from './details.js';
import { applyFaults, initFaults, loadPresets } from './faults.js';

function showConnection(state, text) {
  const connection = byId('connection');
  setData(connection, 'state', state);
  setText(connection, text);
}

function apply(event) {
  setClock(event.now);
  applyServers(event.servers ?? [], event.gone ?? []);
  applyCalls(event.calls ?? []);
  if (event.counters) applyCounters(event.counters, cloudNow());
  if (event.faults) applyFaults(event.faults);
  refreshDetails();
}

function connect() {
  const source = new EventSource('admin/events');
  source.addEventListener('snapshot', (message) => {
    const event = JSON.parse(message.data);
    event.gone = othersThan(event.servers ?? []);
    clearCalls();
    apply(event);
    showConnection('live', 'live');
    loadPresets().catch((failure) => notify(failure.message, true));
  });
  source.addEventListener('change', (message) => apply(JSON.parse(message.data)));
  source.addEventListener('error', () => {
    showConnection('lost', 'connection lost, trying again');
    // The browser tries again by itself unless the mock refused.
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(connect, 2000);
    }
  });
}

initServers(openDetails);
initCalls();
initDetails();
initFaults();
setInterval(() => showRate(cloudNow()), 1000);
connect();
