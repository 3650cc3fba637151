// SPDX-License-Identifier: MIT OR Apache-2.0
// The metadata of the picked runs, and the values in which they differ.

import { dict, list, pair, reason, text, type Json } from "../data";
import { button, el } from "../dom";
import { details, list as listOf, reasonsOf, words } from "../parts";
import { tree } from "../tree";
import type { Source } from "./api";
import { differences } from "./differences";
import type { State } from "./state";

const MOST_ROWS = 2000;

export class Metadata {
  readonly root = el("section", { class: "metadata", "aria-label": "Metadata" });
  private last = 0;

  constructor(
    private readonly api: Source,
    private readonly state: State,
    private readonly act: { column(name: string): void; failed(error: unknown): void },
  ) {}

  async show(): Promise<void> {
    const number = ++this.last;
    if (this.state.runs.length === 0) {
      this.root.replaceChildren(el("p", { class: "empty" }, "Choose runs in the table."));
      return;
    }
    try {
      const answer = await this.api.json("metadata", { runs: this.state.runs });
      if (number !== this.last) return;
      const runs = list(answer.runs, "runs", (value, path) => {
        const one = dict(value, path);
        return {
          label: text(one.label, `${path}.label`),
          verdict: text(one.verdict, `${path}.verdict`),
          reasons: list(one.reasons, `${path}.reasons`, reason),
          damage: list(one.damage, `${path}.damage`, text),
          facts: list(one.facts, `${path}.facts`, pair),
          repeat: text(one.repeat, `${path}.repeat`),
          metadata: one.metadata as Json,
        };
      });
      this.root.replaceChildren(
        ...problemsOf(list(answer.problems, "problems", text)),
        ...(runs.length > 1
          ? [
              this.differences(
                runs.map((one) => one.label),
                differences(runs.map((one) => one.metadata)),
              ),
            ]
          : []),
        ...runs.map((one) => {
          const inside = [
            ...problemsOf(one.damage),
            one.reasons.length > 0 && el("div", { class: `reasons ${one.verdict}` }, reasonsOf(one.reasons)),
            el(
              "dl",
              { class: "facts" },
              ...one.facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
            ),
            one.repeat ? words(one.repeat) : null,
            tree(one.metadata),
          ];
          return runs.length === 1
            ? el(
                "div",
                {},
                el("h2", {}, one.label, " ", el("span", { class: `verdict ${one.verdict}` }, one.verdict)),
                ...inside,
              )
            : details(`${one.label} (${one.verdict})`, ...inside);
        }),
      );
    } catch (error) {
      if (number !== this.last) return;
      this.root.replaceChildren(
        el("p", { class: "reasons degraded" }, error instanceof Error ? error.message : String(error)),
      );
      this.act.failed(error);
    }
  }

  private differences(labels: string[], rows: string[][]): HTMLElement {
    if (rows.length === 0) return el("p", { class: "empty" }, "The metadata of these runs are equal.");
    return el(
      "div",
      { class: "table", role: "region", tabindex: 0, "aria-label": "Values in which the runs differ" },
      el(
        "table",
        {},
        el("caption", {}, `${rows.length} values in which the runs differ`),
        el("thead", {}, el("tr", {}, ...["value", ...labels].map((one) => el("th", { scope: "col" }, one)))),
        el(
          "tbody",
          {},
          ...rows.slice(0, MOST_ROWS).map(([key, ...values]) =>
            el(
              "tr",
              {},
              el(
                "th",
                { scope: "row" },
                button(key ?? "", `Make ${key ?? ""} a column of the table`, () => this.act.column(key ?? "")),
              ),
              ...values.map((value) => el("td", {}, value || "\u2013")),
            ),
          ),
        ),
      ),
      rows.length > MOST_ROWS &&
        el("p", { class: "note" }, `${rows.length - MOST_ROWS} further values are left out.`),
    );
  }
}

function problemsOf(texts: string[]): HTMLElement[] {
  return texts.length > 0 ? [el("div", { class: "reasons degraded" }, listOf(texts))] : [];
}
