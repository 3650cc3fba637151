// SPDX-License-Identifier: MIT OR Apache-2.0
// The table of runs: search, facets, further columns, ticks. Only the rows in view are in the document.

import { button, el } from "../dom";
import { facets, filtered, isCondition, searched, shown, sorted, type Row } from "./rows";
import type { State } from "./state";

export interface TableData {
  columns: string[];
  rows: Row[];
  /** What the table leaves out; "": nothing. */
  note: string;
}

export interface TableActions {
  /** The user has ticked or unticked runs. */
  picked(): void;
  /** Another search that the server evaluates, or other columns. */
  ask(): void;
  /** Names of columns to offer. */
  offer(): Promise<string[]>;
  changed(): void;
}

const ROW = 34; // height of a row in CSS pixels, as in explore.css
const SPARE = 12; // rows above and below those in view

export class Table {
  readonly root: HTMLElement;
  private data: TableData = { columns: [], rows: [], note: "" };
  private view: Row[] = [];
  private fresh = new Set<string>();
  private readonly search = el("input", {
    type: "search",
    placeholder: "Search: words, or verdict!=valid",
    "aria-label": "Search the runs by words, or by a condition such as test=rrul and verdict=valid",
  });
  private readonly problem = el("p", { class: "damage", role: "alert", hidden: true });
  private readonly facets = el("div", { class: "facets" });
  private readonly count = el("p", { class: "note count-line", role: "status" });
  private readonly head = el("tr");
  private readonly body = el("tbody");
  private readonly above = el("tr", { class: "spare", "aria-hidden": "true" });
  private readonly below = el("tr", { class: "spare", "aria-hidden": "true" });
  private readonly table = el("table", { class: "runs" }, el("thead", {}, this.head), this.body);
  private readonly holder = el("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "Runs" }, this.table);
  private readonly offers = el("datalist", { id: "column-names" });
  private readonly column = el("input", {
    type: "text",
    list: "column-names",
    placeholder: "Add a column",
    "aria-label": "Add a column: a property, a figure, a setting, or a path into the metadata",
  });

  constructor(
    private readonly state: State,
    private readonly act: TableActions,
  ) {
    this.root = el(
      "section",
      { class: "table-pane", id: "runs", "aria-label": "Table of runs" },
      el("div", { class: "find" }, this.search, this.column, this.offers),
      this.facets,
      this.problem,
      this.count,
      this.holder,
    );
    this.search.value = state.search;
    let waiting = 0;
    this.search.addEventListener("input", () => {
      const before = isCondition(state.search);
      state.search = this.search.value;
      clearTimeout(waiting);
      if (before || isCondition(state.search)) waiting = window.setTimeout(() => act.ask(), 300);
      else this.refresh();
      act.changed();
    });
    this.column.addEventListener("focus", () => {
      void act
        .offer()
        .then((names) => this.offers.replaceChildren(...names.map((name) => el("option", { value: name }))));
    });
    this.column.addEventListener("change", () => {
      const name = this.column.value.trim();
      this.column.value = "";
      if (name) this.add(name);
    });
    this.holder.addEventListener("scroll", () => this.paint(), { passive: true });
    new ResizeObserver(() => this.paint()).observe(this.holder);
  }

  add(column: string): void {
    if (this.data.columns.includes(column)) return;
    this.state.columns.push(column);
    this.act.ask();
  }

  /** New rows; those that were not there before are marked for a moment. */
  show(data: TableData): void {
    const before = new Set(this.data.rows.map((row) => row.name));
    this.fresh = new Set(before.size > 0 ? data.rows.map((row) => row.name).filter((name) => !before.has(name)) : []);
    this.data = data;
    this.problem.hidden = true;
    this.refresh();
  }

  fail(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
  }

  focusSearch(): void {
    this.search.focus();
    this.search.select();
  }

  /** The name of the run that is `step` rows after that one in the table. */
  after(name: string | undefined, step: number): string | undefined {
    const at = this.view.findIndex((row) => row.name === name);
    const to = at < 0 ? (step > 0 ? 0 : this.view.length - 1) : at + step;
    return this.view[Math.min(this.view.length - 1, Math.max(0, to))]?.name;
  }

  reveal(name: string): void {
    const at = this.view.findIndex((row) => row.name === name);
    const top = at * ROW;
    const { scrollTop, clientHeight } = this.holder;
    if (at >= 0 && (top < scrollTop || top + 2 * ROW > scrollTop + clientHeight))
      this.holder.scrollTop = top - clientHeight / 3;
  }

  get rows(): readonly Row[] {
    return this.data.rows;
  }

  refresh(): void {
    const { state, data } = this;
    const found = searched(data.rows, state.search);
    const offered = facets(found, data.columns);
    for (const key of state.facets.keys()) if (!data.columns.includes(key)) state.facets.delete(key);
    this.view = sorted(filtered(found, data.columns, state.facets), data.columns, state.sort);
    this.facets.replaceChildren(
      ...offered.map(({ column, values }) =>
        el(
          "div",
          { class: "facet", role: "group", "aria-label": column },
          el("span", { class: "label" }, column),
          el(
            "div",
            {},
            ...values.map(([value, count]) => {
              const on = state.facets.get(column) === value;
              return button(
                `${value || "none"} ${count}`,
                `${value || "none"} ${count}: only runs with this ${column}`,
                () => {
                  if (on) state.facets.delete(column);
                  else state.facets.set(column, value);
                  this.refresh();
                  this.act.changed();
                },
                { "aria-pressed": on },
              );
            }),
          ),
        ),
      ),
    );
    const picked = state.runs.length;
    this.count.textContent =
      data.rows.length === 0
        ? state.search
          ? "No run meets the condition."
          : "No runs in this directory yet. `ktrxer run` makes some; they appear here."
        : [`${this.view.length} of ${data.rows.length} runs`, picked > 0 && `${picked} in the picture`, data.note]
            .filter(Boolean)
            .join("; ");
    this.heads();
    this.paint();
  }

  private heads(): void {
    const { state, data } = this;
    const all = this.view.length > 0 && this.view.every((row) => state.runs.includes(row.name));
    const tick = el("input", { type: "checkbox", "aria-label": "All runs that are shown", checked: all });
    tick.addEventListener("change", () => {
      const names = this.view.map((row) => row.name);
      state.runs = all ? state.runs.filter((name) => !names.includes(name)) : [...new Set([...state.runs, ...names])];
      this.act.picked();
    });
    this.head.replaceChildren(
      el("th", { class: "tick" }, tick),
      ...data.columns.map((column) => {
        const on = state.sort.replace(/^-/, "") === column;
        const down = on && state.sort.startsWith("-");
        const sortButton = button(`${column}${on ? (down ? " \u25be" : " \u25b4") : ""}`, `Sort by ${column}`, () => {
          state.sort = on ? (down ? "" : `-${column}`) : column;
          this.refresh();
          this.act.changed();
        });
        const remove =
          state.columns.includes(column) &&
          button("\u00d7", `Remove the column ${column}`, () => {
            state.columns = state.columns.filter((one) => one !== column);
            this.act.ask();
          });
        return el(
          "th",
          { scope: "col", "aria-sort": on ? (down ? "descending" : "ascending") : null },
          sortButton,
          remove,
        );
      }),
    );
    this.table.setAttribute("aria-rowcount", String(this.view.length + 1));
  }

  private paint(): void {
    const { scrollTop, clientHeight } = this.holder;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - SPARE);
    const to = Math.min(this.view.length, Math.ceil((scrollTop + Math.max(clientHeight, 200)) / ROW) + SPARE);
    const spare = (row: HTMLElement, rows: number): void => {
      row.style.height = `${rows * ROW}px`;
      row.hidden = rows === 0;
    };
    spare(this.above, from);
    spare(this.below, this.view.length - to);
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.run : undefined;
    this.body.replaceChildren(
      this.above,
      ...this.view.slice(from, to).map((row, i) => this.row(row, from + i)),
      this.below,
    );
    if (focused !== undefined)
      [...this.body.querySelectorAll<HTMLElement>("input[data-run]")]
        .find((one) => one.dataset.run === focused)
        ?.focus({ preventScroll: true });
  }

  private row(row: Row, at: number): HTMLElement {
    const { state } = this;
    const on = state.runs.includes(row.name);
    const tick = el("input", {
      type: "checkbox",
      checked: on,
      "aria-label": `${row.name} in the picture`,
      "data-run": row.name,
    });
    tick.addEventListener("change", () => {
      state.runs = tick.checked ? [...state.runs, row.name] : state.runs.filter((name) => name !== row.name);
      this.act.picked();
    });
    const node = el(
      "tr",
      {
        class: `${on ? "on" : ""} ${row.state} ${this.fresh.has(row.name) ? "fresh" : ""}`.trim(),
        "aria-rowindex": at + 2,
        "data-name": row.name,
      },
      el("td", { class: "tick" }, tick),
      ...row.cells.map((cell, i) => {
        const text = shown(cell);
        const verdict = this.data.columns[i] === "verdict";
        return el(
          "td",
          { class: typeof cell === "number" ? "number" : null, title: text.length > 24 ? text : null },
          verdict ? el("span", { class: `verdict ${text}` }, text) : text,
        );
      }),
    );
    // A click anywhere on the row shows this run alone; with Ctrl or Shift it adds or removes it.
    node.addEventListener("click", (event) => {
      if (event.target === tick || (event.target instanceof Element && event.target.closest(".tick"))) return;
      if (event.ctrlKey || event.metaKey || event.shiftKey)
        state.runs = on ? state.runs.filter((name) => name !== row.name) : [...state.runs, row.name];
      else state.runs = [row.name];
      this.act.picked();
    });
    return node;
  }
}
