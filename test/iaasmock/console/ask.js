// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

import { byId } from './dom.js';

/** ask calls an admin endpoint of the mock. A refusal becomes an error with the mock's message. */
export async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (method !== 'GET') options.headers['Content-Type'] = 'application/json';
  if (body !== undefined) options.body = JSON.stringify(body);
  const response = await fetch(path, options);
  const text = await response.text();
  let answer;
  try { answer = text ? JSON.parse(text) : undefined; } catch { answer = undefined; }
  if (!response.ok) throw new Error(answer?.msg ?? (text.trim() || response.statusText));
  return answer;
}

let hiding;

/** notify shows the result of an action for some seconds. */
export function notify(text, failed = false) {
  const notice = byId('notice');
  notice.textContent = text;
  notice.dataset.failed = failed;
  notice.classList.add('shown');
  clearTimeout(hiding);
  hiding = setTimeout(() => notice.classList.remove('shown'), failed ? 10000 : 4000);
}

/** attempt runs an action and shows its result; false if it failed. */
export async function attempt(done, action) {
  try {
    await action();
    notify(done);
    return true;
  } catch (failure) {
    notify(failure.message, true);
    return false;
  }
}
