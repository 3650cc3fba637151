// SPDX-License-Identifier: MIT OR Apache-2.0
// Only this file creates elements. Text becomes text nodes: no text of a run is parsed as HTML.

export type Child = Node | string | null | undefined | false;

type Attributes = Record<string, string | number | boolean | null | undefined>;

function fill(node: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    // A handler as an attribute would be code: add listeners only by addEventListener.
    if (/^on/i.test(name) || name === "style") throw new Error(`el() does not accept the attribute ${name}`);
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child); // a string becomes a text node
  }
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/** A button with a label for screen readers. */
export function button(
  label: string,
  title: string,
  act: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const node = el("button", { type: "button", title, "aria-label": title, ...attributes }, label);
  node.addEventListener("click", act);
  return node;
}

export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`${what} is missing`);
  return value;
}
