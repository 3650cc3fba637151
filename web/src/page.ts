// SPDX-License-Identifier: MIT OR Apache-2.0
// The sections of a report: figures, verdict, plots, how to repeat the run, metadata.

import type { Columns } from "./arrays";
import type { Command, Overview, Report, Run } from "./data";
import { el } from "./dom";
import { Selection } from "./link";
import { commandOf, details, figureOf, list, reasonsOf, tableOf, words } from "./parts";
import { Sheet } from "./sheet";
import { themeButton, type Theme } from "./theme";
import { tree } from "./tree";

export const VERDICTS = {
  valid: ["\u2713", "valid"],
  degraded: ["!", "degraded"],
  invalid: ["\u2715", "invalid"],
  unknown: ["?", "no verdict"],
} as const;

const LONG = 60; // letters of a fact that gets a line of its own

/** Open where a command has failed: its output is the reason. */
function commandsOf(commands: readonly Command[]): HTMLElement {
  const failed = commands.some((one) => !one.ended);
  const node = details(
    commands.length === 1 ? "The command of this run" : `${commands.length} commands of this run`,
    ...commands.map(commandOf),
  );
  node.toggleAttribute("open", failed);
  return node;
}

export class Page {
  private readonly sheet: Sheet;

  constructor(
    private readonly report: Report,
    columns: Columns,
    private readonly theme: Theme,
  ) {
    this.sheet = new Sheet(columns, theme);
    addEventListener("beforeprint", () => {
      // A folded panel has no width, so it is opened before it is drawn.
      document.querySelectorAll<HTMLDetailsElement>("details.folded").forEach((one) => (one.open = true));
      this.sheet.drawAll();
    });
  }

  render(into: HTMLElement): void {
    const { report } = this;
    document.title = report.title;
    const several = report.runs.length > 1;
    into.replaceChildren(
      el(
        "header",
        { class: "top" },
        el("a", { class: "skip", href: "#content" }, "Skip to the results"),
        el("span", { class: "brand" }, "ktrxer"),
        el("nav", { "aria-label": "Sections" }, ...this.links()),
        themeButton(this.theme),
      ),
      el(
        "main",
        { id: "content", tabindex: -1 },
        several && el("h1", {}, report.title),
        several && report.overview && this.overview(report.overview),
        ...report.runs.map((run, i) => this.run(run, i, several)),
      ),
      el(
        "footer",
        {},
        `Made by ${report.generator}, ${report.created}. This file is complete and makes no network requests.`,
      ),
    );
    this.sheet.watch();
  }

  private links(): HTMLElement[] {
    const link = (id: string, words: string): HTMLElement => el("a", { href: `#${id}` }, words);
    if (this.report.runs.length > 1) {
      return [
        link("overview", "Overview"),
        ...this.report.runs.map((run, i) => link(`run-${i}`, run.title || `Run ${i + 1}`)),
      ];
    }
    return [
      link("run-0", "Summary"),
      link("plots-0", "Plots"),
      link("repeat-0", "Repeat"),
      link("metadata-0", "Metadata"),
    ];
  }

  private overview(overview: Overview): HTMLElement {
    return el(
      "section",
      { id: "overview" },
      el("h2", {}, "Overview"),
      overview.sentences.length > 0 && el("div", { class: "answer" }, list(overview.sentences)),
      ...overview.tables.map((table) => tableOf(table, "all runs")),
      ...this.sheet.panels(overview.panels, new Selection(), 3),
    );
  }

  private run(run: Run, index: number, several: boolean): HTMLElement {
    const selection = new Selection();
    for (const panel of run.panels)
      for (const series of panel.series) if (series.hidden) selection.hidden.add(series.key);
    const level = several ? "h3" : "h2";
    const of = several ? `${run.title || "Untitled run"} (${index + 1})` : "";
    const [sign, word] = VERDICTS[run.verdict];
    return el(
      "article",
      { id: `run-${index}` },
      el(
        "header",
        { class: "head" },
        el(several ? "h2" : "h1", {}, run.title || "Untitled run"),
        el("span", { class: `verdict ${run.verdict}` }, el("span", { "aria-hidden": "true" }, sign), ` ${word}`),
        run.subtitle && el("p", { class: "subtitle" }, run.subtitle),
      ),
      el(
        "div",
        { class: `answer ${run.headline.kind}` },
        el("p", { class: "headline" }, run.headline.text),
        run.headline.details.length > 0 && list(run.headline.details),
      ),
      run.damage.length > 0 &&
        el("div", { class: "damage", role: "alert" }, el("strong", {}, "This run is damaged."), list(run.damage)),
      run.reasons.length > 0 && el("div", { class: `reasons ${run.verdict}` }, reasonsOf(run.reasons)),
      run.figures.length > 0 && el("div", { class: "figures" }, ...run.figures.map(figureOf)),
      ...run.tables.slice(0, 1).map((table) => tableOf(table, of)),
      run.tables.length > 1 &&
        details(
          run.tables
            .slice(1)
            .map((table) => table.title.split(",")[0])
            .join(" \u00b7 "),
          ...run.tables.slice(1).map((table) => tableOf(table, of)),
        ),
      el(
        "section",
        { id: `plots-${index}` },
        el(level, {}, "Plots"),
        run.panels.length === 0 && el("p", { class: "note" }, "This run has no samples to plot."),
        run.panels.length > 0 && this.hints(),
        ...this.sheet.panels(run.panels, selection, several ? 4 : 3),
      ),
      el(
        "section",
        { id: `repeat-${index}` },
        el(level, {}, "Repeat this run"),
        run.repeat.length > 0
          ? words(run.repeat.join("\n"))
          : el("p", { class: "note" }, "The command of this run was not recorded."),
        run.commands.length > 0 &&
          commandsOf(run.commands),
        run.events &&
          run.events.rows.length > 0 &&
          details(`${run.events.rows.length} events`, tableOf(run.events, of)),
      ),
      el(
        "section",
        { id: `metadata-${index}` },
        el(level, {}, "Metadata"),
        run.facts.length > 0 &&
          el(
            "dl",
            { class: "facts" },
            ...run.facts.map(([name, value]) =>
              el("div", { class: value.length > LONG ? "long" : null }, el("dt", {}, name), el("dd", {}, value)),
            ),
          ),
        details("All recorded metadata", tree(run.metadata)),
      ),
    );
  }

  private hints(): HTMLElement {
    return el(
      "p",
      { class: "note screen" },
      "Drag to zoom; double-click to show all. On a touch screen, one finger moves the cursor and two zoom. ",
      "All plots over time have the same range. ",
      "Click a name to hide its series in all plots; double-click to show only that series. Shaded: load.",
    );
  }
}
