// SPDX-License-Identifier: MIT OR Apache-2.0
// The metadata of a run as a tree with collapsible branches and a search field.

import type { Json } from "./data";
import { el } from "./dom";

const MANY = 200; // children that are shown before the button `more`
const LONG = 2000; // characters of one value that are shown

function leaf(value: Json): string {
  if (value === null) return "\u2013";
  const text = String(value);
  return text.length > LONG ? `${text.slice(0, LONG)}\u2026 (${text.length} characters)` : text;
}

function isLeaf(value: Json): value is null | boolean | number | string {
  return value === null || typeof value !== "object";
}

function entries(value: Json): [string, Json][] {
  if (isLeaf(value)) return [];
  return Array.isArray(value) ? value.map((item, i) => [String(i), item]) : Object.entries(value);
}

function children(parent: HTMLElement, all: readonly [string, Json][], from: number): void {
  // A list of values has only names and values in it: branches stand between two lists.
  let list: HTMLElement | null = null;
  for (const [name, value] of all.slice(from, from + MANY)) {
    if (isLeaf(value)) {
      if (!list) parent.append((list = el("dl")));
      list.append(el("div", {}, el("dt", {}, name), el("dd", {}, leaf(value))));
    } else {
      list = null;
      parent.append(branch(name, value));
    }
  }
  if (all.length > from + MANY) {
    const more = el("button", { type: "button" }, `${all.length - from - MANY} more`);
    more.addEventListener("click", () => {
      more.remove();
      children(parent, all, from + MANY);
    });
    parent.append(more);
  }
}

function branch(name: string, value: Json): HTMLDetailsElement {
  const inside = entries(value);
  const node = el("details", {}, el("summary", {}, name, " ", el("span", { class: "count" }, `${inside.length}`)));
  // The children are created when the branch is opened, because a run may have thousands of values.
  node.addEventListener("toggle", () => {
    if (node.open && node.childElementCount === 1) children(node, inside, 0);
  });
  return node;
}

/** Paths whose name or value contains the word; at most `limit`. */
export function find(value: Json, word: string, limit: number): [string, string][] {
  const wanted = word.toLowerCase();
  const found: [string, string][] = [];
  const stack: [string, Json][] = [["", value]];
  while (stack.length > 0 && found.length < limit) {
    const [path, here] = stack.pop() as [string, Json];
    if (isLeaf(here)) {
      if (path.toLowerCase().includes(wanted) || String(here).toLowerCase().includes(wanted))
        found.push([path, leaf(here)]);
    } else for (const [name, inner] of entries(here).reverse()) stack.push([path ? `${path}.${name}` : name, inner]);
  }
  return found;
}

export function tree(value: Json): HTMLElement {
  const whole = el("div", { class: "tree" });
  if (isLeaf(value)) whole.append(el("p", { class: "note" }, "This run has no metadata."));
  else children(whole, entries(value), 0);
  const results = el("div", { class: "tree", hidden: true });
  const input = el("input", {
    type: "search",
    placeholder: "Search the metadata",
    "aria-label": "Search the metadata",
  });
  input.addEventListener("input", () => {
    const word = input.value.trim();
    results.hidden = word === "";
    whole.hidden = word !== "";
    if (word === "") return;
    const found = find(value, word, 300);
    results.replaceChildren(
      found.length === 0
        ? el("p", { class: "note" }, "Nothing found.")
        : el("dl", {}, ...found.map(([path, text]) => el("div", {}, el("dt", {}, path), el("dd", {}, text)))),
    );
  });
  return el("div", {}, input, results, whole);
}
