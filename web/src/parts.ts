// SPDX-License-Identifier: MIT OR Apache-2.0
// Parts of pages: lists, tables, figures, commands.

import type { Command, Figure, Reason, Table } from "./data";
import { button, el, type Child } from "./dom";

export function list(items: readonly string[]): HTMLElement {
  return el("ul", {}, ...items.map((item) => el("li", {}, item)));
}

/** The identifier is that of docs/reference/reasons.md, which has the remedy; its tooltip has the numbers. */
export function reasonsOf(reasons: readonly Reason[]): HTMLElement {
  const line = (one: Reason): HTMLElement => {
    const numbers = one.values.map(([name, value]) => `${name}: ${value}`).join("\n");
    const about = [one.id !== "text" && one.id, one.severity, one.cause && `cause ${one.cause}`].filter(Boolean);
    const note = el("span", { class: "about", title: numbers }, about.join(", "));
    return el("li", { "data-reason": one.id }, one.text, " ", note);
  };
  return el("ul", {}, ...reasons.map(line));
}

export function details(title: string, ...inside: Child[]): HTMLElement {
  return el("details", { class: "more" }, el("summary", {}, title), ...inside);
}

export function figureOf(figure: Figure): HTMLElement {
  return el(
    "div",
    { class: "figure" },
    el("span", { class: "label" }, figure.label),
    el("span", { class: "big" }, figure.value, figure.unit && el("span", { class: "unitword" }, ` ${figure.unit}`)),
    figure.note && el("span", { class: "note" }, figure.note),
  );
}

const LONG = 22; // letters of a name and a value that get a line of their own on a phone

/** `of`: what the table belongs to, where the page has several tables with its title. */
export function tableOf(table: Table, of = ""): HTMLElement {
  // Right-align a column of numbers and of signs for missing numbers.
  const numeric = table.columns.map(
    (_, i) =>
      i > 0 &&
      table.rows.every(
        (row) =>
          /^[+\u2212\u2013\d.,\s%a-zµ/±<>≤≥-]*$/i.test(row[i] ?? "") &&
          /^[+\u2212\u2013\d<>±≤≥-]|^$|^lost$/.test(row[i] ?? ""),
      ),
  );
  const head = (text: string, i: number): HTMLElement =>
    el("th", { class: numeric[i] ? "number" : null, scope: "col", role: "columnheader" }, text);
  // On a phone each row stands by itself, with the names of the columns beside the values. Roles, because a row that
  // is no longer laid out as one would not be one for a screen reader.
  const cell = (text: string, i: number): HTMLElement => {
    const name = table.columns[i] ?? "";
    const long = name.length + text.length > LONG;
    return el(
      "td",
      { class: `${numeric[i] ? "number" : ""} ${long ? "long" : ""}`.trim() || null, role: "cell", "data-name": name },
      text,
    );
  };
  return el(
    "div",
    { class: "table", role: "region", tabindex: 0, "aria-label": of ? `${table.title}: ${of}` : table.title },
    el(
      "table",
      { role: "table" },
      el("caption", {}, table.title),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...table.columns.map(head))),
      el(
        "tbody",
        { role: "rowgroup" },
        ...table.rows.map((row) =>
          el(
            "tr",
            { role: "row" },
            ...row.map((text, i) => (i === 0 ? el("th", { scope: "row", role: "rowheader" }, text) : cell(text, i))),
          ),
        ),
      ),
    ),
    ...table.notes.map((note) => el("p", { class: "note" }, note)),
  );
}

export function words(text: string): HTMLElement {
  const copy = button("copy", "Copy this command", () => {
    // A page from a file may have no clipboard: then select the text, so that the user can copy it by keyboard.
    const fallback = (): void => {
      const range = document.createRange();
      range.selectNodeContents(code);
      const selected = getSelection();
      selected?.removeAllRanges();
      selected?.addRange(range);
    };
    if (navigator.clipboard) {
      navigator.clipboard.writeText(text).then(() => {
        copy.textContent = "copied";
        setTimeout(() => (copy.textContent = "copy"), 1500);
      }, fallback);
    } else fallback();
  });
  const code = el("code", {}, text);
  return el("div", { class: "words" }, el("pre", { tabindex: 0 }, code), copy);
}

export function commandOf(command: Command): HTMLElement {
  return el(
    "div",
    { class: "command" },
    el(
      "p",
      {},
      el("strong", {}, command.name),
      command.host && ` on ${command.host}`,
      command.outcome && `: ${command.outcome}`,
    ),
    words(command.words),
    command.output && el("pre", { class: "output", tabindex: 0 }, command.output),
  );
}
