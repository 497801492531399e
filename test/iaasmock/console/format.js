// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

/** shortDuration formats a duration in milliseconds with one or two units. */
export function shortDuration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, '0')}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${String(Math.floor(s / 60) % 60).padStart(2, '0')}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
}

/** lapse is shortDuration with tenths of a second below 10 s. */
export const lapse = (ms) => (ms < 10000 ? `${(ms / 1000).toFixed(1)}s` : shortDuration(ms));

/** took formats a duration in nanoseconds, as Go's JSON has it. */
export function took(ns) {
  const ms = ns / 1e6;
  if (ms < 1) return `${Math.round(ns / 1000)} µs`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  if (ms < 10000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

/** clockTime formats the time of day with milliseconds. */
export function clockTime(at) {
  const two = (n) => String(n).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

export const number = (n) => n.toLocaleString('en');

/** skew is the mock's time minus this computer's: a mock may have another clock. */
let skew = 0;
export function setClock(now) { skew = Date.parse(now) - Date.now(); }
export const cloudNow = () => Date.now() + skew;

/** plural formats a number with its noun. */
export const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
