// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Names, labels and messages come from clients: every value becomes a text node here, and
// nothing is parsed as HTML.

/** el makes an element. Properties are set as such, those with a dash or "role" as attributes. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.includes('-') || name === 'role') node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

/** setText changes the document only if the text is another. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** setData is setText for a data attribute. */
export function setData(node, name, value) {
  if (node.dataset[name] !== value) node.dataset[name] = value;
}

export const byId = (id) => document.getElementById(id);

/** statusMark returns a coloured mark with the state's name. */
export function statusMark(status) {
  const mark = el('span', { className: 'status', textContent: status });
  mark.dataset.status = status;
  return mark;
}

export function showStatus(mark, status) {
  setText(mark, status);
  setData(mark, 'status', status);
}
