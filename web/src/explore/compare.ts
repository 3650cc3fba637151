// SPDX-License-Identifier: MIT OR Apache-2.0
// Two groups of the picked runs: the difference of each figure with its interval.

import { dict, list, panelReader, text, type Dict, type Table } from "../data";
import { el } from "../dom";
import { number } from "../format";
import { Selection } from "../link";
import { details, list as listOf, tableOf, words } from "../parts";
import { Sheet } from "../sheet";
import type { Theme } from "../theme";
import type { Source } from "./api";
import type { State } from "./state";

type Group = [string, string[]];
const MINUS = "\u2212";

export class Compare {
  readonly root: HTMLElement;
  private readonly by: HTMLInputElement;
  private readonly a = el("select", { "aria-label": "Group A" });
  private readonly b = el("select", { "aria-label": "Group B" });
  private readonly every = el("input", { type: "checkbox" });
  private readonly stage = el("div");
  private groups: Group[] = [];
  private sheet: Sheet | null = null;
  private last = 0;

  constructor(
    private readonly api: Source,
    private readonly state: State,
    private readonly theme: Theme,
    private readonly colors: number,
    private readonly act: { changed(): void; failed(error: unknown): void },
  ) {
    this.by = el("input", {
      type: "text",
      list: "column-names",
      value: state.by || "title",
      "aria-label": "Property that makes the groups",
    });
    this.every.checked = state.all;
    this.by.addEventListener("change", () => {
      state.by = this.by.value.trim();
      [state.a, state.b] = ["", ""];
      this.again();
    });
    for (const [node, side] of [
      [this.a, "a"],
      [this.b, "b"],
    ] as const)
      node.addEventListener("change", () => {
        state[side] = node.value;
        this.again();
      });
    this.every.addEventListener("change", () => {
      state.all = this.every.checked;
      this.again();
    });
    this.root = el(
      "section",
      { class: "compare", "aria-label": "Comparison" },
      el(
        "div",
        { class: "controls" },
        el("label", {}, "groups by ", this.by),
        el("label", {}, "A ", this.a),
        el("label", {}, "B ", this.b),
        el("label", {}, this.every, " also runs that are not valid"),
      ),
      this.stage,
    );
  }

  private again(): void {
    this.act.changed();
    void this.show();
  }

  async show(): Promise<void> {
    const { state } = this;
    const number = ++this.last;
    const say = (message: string, kind = "empty"): void => {
      this.sheet?.close();
      this.stage.replaceChildren(el("p", { class: kind }, message));
    };
    if (state.runs.length < 2) {
      say("Choose at least two runs in the table; an interval needs three in each group.");
      return;
    }
    try {
      const found = await this.api.json("groups", { runs: state.runs, by: state.by || "title" });
      if (number !== this.last) return;
      this.groups = list(found.groups, "groups", (value, path): Group => {
        const both = Array.isArray(value) ? value : [];
        return [text(both[0], path), list(both[1], path, text)];
      });
      this.offer();
      const [a, b] = [this.group(state.a, 0), this.group(state.b, 1)];
      if (!a || !b) {
        say(`All of these runs have the same ${state.by || "title"}: another property makes groups.`);
        return;
      }
      const asked = { a: a[1], b: b[1], a_name: a[0], b_name: b[0], all: state.all };
      const answer = await this.api.binary("compare", asked);
      if (number !== this.last) return;
      this.sheet?.close();
      const sheet = (this.sheet = new Sheet(answer.columns, this.theme));
      const panels = list(answer.data.panels, "panels", panelReader(answer.arrays, this.colors));
      const made = dict(answer.data.comparison, "comparison");
      const problems = list(answer.data.problems, "problems", text);
      this.stage.replaceChildren(
        el(
          "div",
          { class: "answer" },
          el("h2", {}, `${b[0] || "none"} against ${a[0] || "none"}`),
          listOf(list(made.sentences, "sentences", text)),
        ),
        ...list(made.notes, "notes", text).map((note) => el("p", { class: "note" }, note)),
        tableOf(table(made, a[0], b[0])),
        ...(problems.length > 0 ? [details(`${problems.length} runs are left out`, listOf(problems))] : []),
        ...sheet.panels(panels, new Selection(), 3),
        words(text(answer.data.command, "command")),
      );
      sheet.watch();
    } catch (error) {
      if (number !== this.last) return;
      say(error instanceof Error ? error.message : String(error), "reasons degraded");
      this.act.failed(error);
    }
  }

  /** A panel that was not in view yet is drawn now. */
  drawAll(): void {
    this.sheet?.drawAll();
  }

  private group(name: string, usual: number): Group | undefined {
    return this.groups.find((one) => one[0] === name) ?? this.groups[usual];
  }

  private offer(): void {
    for (const [node, wanted, usual] of [
      [this.a, this.state.a, 0],
      [this.b, this.state.b, 1],
    ] as const) {
      node.replaceChildren(
        ...this.groups.map(([name, runs]) => el("option", { value: name }, `${name || "none"} (${runs.length})`)),
      );
      const group = this.group(wanted, usual);
      if (group) node.value = group[0];
    }
  }
}

/** The value with two digits of its uncertainty; three to four digits where that is not known. */
function figure(value: unknown, half: number | null): string {
  if (typeof value !== "number") return "\u2013";
  if (half === null || !(half > 0)) return number(value);
  const digits = Math.min(9, Math.max(0, 1 - Math.floor(Math.log10(half))));
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `${MINUS}${text}` : text;
}

/** Each figure of the comparison (analyse/compare.py, as_json). */
function table(made: Dict, a: string, b: string): Table {
  const rows = list(made.figures, "figures", (value, path) => {
    const one = dict(value, path);
    const unit = text(one.unit, `${path}.unit`);
    const interval = typeof one.low === "number" && typeof one.high === "number";
    const half = interval ? ((one.high as number) - (one.low as number)) / 2 : null;
    return [
      `${text(one.label, `${path}.label`)}${unit ? ` (${unit})` : ""}`,
      figure(one.mean_a, half),
      figure(one.mean_b, half),
      figure(one.difference, half),
      interval ? `${figure(one.low, half)} to ${figure(one.high, half)}` : "\u2013",
      typeof one.p_corrected === "number"
        ? one.p_corrected < 0.001
          ? "< 0.001"
          : one.p_corrected.toFixed(3)
        : "\u2013",
      text(one.outcome, `${path}.outcome`),
    ];
  });
  return {
    title: "Figures: mean of the runs",
    columns: ["figure", a || "A", b || "B", "difference", "95 % interval", "p (Holm)", "outcome"],
    rows,
    notes: [],
  };
}
