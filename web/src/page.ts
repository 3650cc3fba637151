// SPDX-License-Identifier: MIT OR Apache-2.0
// The sections of a report: figures, verdict, plots, how to repeat the run, metadata.

import { PackedError, type Columns } from "./arrays";
import type { Command, Figure, Panel, Report, Run, Table } from "./data";
import { button, el, type Child } from "./dom";
import { Link, Selection } from "./link";
import { PanelView } from "./panel";
import type { Choice, Theme } from "./theme";
import { tree } from "./tree";

const VERDICTS = {
  valid: ["\u2713", "valid"],
  degraded: ["!", "degraded"],
  invalid: ["\u2715", "invalid"],
  unknown: ["?", "no verdict"],
} as const;

export class Page {
  private readonly views: PanelView[] = [];
  private readonly watcher: IntersectionObserver | null;

  constructor(
    private readonly report: Report,
    private readonly columns: Columns,
    private readonly theme: Theme,
  ) {
    // A plot is drawn when it comes near the visible part of the page, or before printing.
    this.watcher =
      "IntersectionObserver" in window
        ? new IntersectionObserver((seen) => seen.forEach((one) => one.isIntersecting && this.draw(one.target)), {
            rootMargin: "400px",
          })
        : null;
    addEventListener("beforeprint", () => {
      // A folded panel has no width, so it is opened before it is drawn.
      document.querySelectorAll<HTMLDetailsElement>("details.folded").forEach((one) => (one.open = true));
      this.views.forEach((view) => view.draw());
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
        this.themeButton(),
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
    for (const view of this.views) {
      if (this.watcher) this.watcher.observe(view.root);
      else view.draw();
    }
  }

  private draw(root: Element): void {
    this.watcher?.unobserve(root);
    this.views.find((view) => view.root === root)?.draw();
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

  private themeButton(): HTMLElement {
    const order: Choice[] = ["auto", "light", "dark"];
    const words = { auto: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
    const signs = { auto: "\u25d0", light: "\u25cb", dark: "\u25cf" };
    const node = button(
      signs[this.theme.choice],
      words[this.theme.choice],
      () => {
        this.theme.set(order[(order.indexOf(this.theme.choice) + 1) % order.length] as Choice);
        node.textContent = signs[this.theme.choice];
        node.title = words[this.theme.choice];
        node.setAttribute("aria-label", node.title);
      },
      { class: "theme" },
    );
    return node;
  }

  private overview(overview: { tables: Table[]; panels: Panel[] }): HTMLElement {
    return el(
      "section",
      { id: "overview" },
      ...overview.tables.map((table) => tableOf(table)),
      ...this.panels(overview.panels, new Selection(), 3),
    );
  }

  private run(run: Run, index: number, several: boolean): HTMLElement {
    const selection = new Selection();
    for (const panel of run.panels)
      for (const series of panel.series) if (series.hidden) selection.hidden.add(series.key);
    const level = several ? "h3" : "h2";
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
      run.reasons.length > 0 && el("div", { class: `reasons ${run.verdict}` }, list(run.reasons)),
      run.figures.length > 0 && el("div", { class: "figures" }, ...run.figures.map(figureOf)),
      ...run.tables.slice(0, 1).map((table) => tableOf(table)),
      run.tables.length > 1 &&
        details(
          run.tables
            .slice(1)
            .map((table) => table.title.split(",")[0])
            .join(" \u00b7 "),
          ...run.tables.slice(1).map((table) => tableOf(table)),
        ),
      el(
        "section",
        { id: `plots-${index}` },
        el(level, {}, "Plots"),
        run.panels.length === 0 && el("p", { class: "note" }, "This run has no samples to plot."),
        run.panels.length > 0 && this.hints(),
        ...this.panels(run.panels, selection, several ? 4 : 3),
      ),
      el(
        "section",
        { id: `repeat-${index}` },
        el(level, {}, "Repeat this run"),
        run.repeat.length > 0
          ? words(run.repeat.join("\n"))
          : el("p", { class: "note" }, "The command of this run was not recorded."),
        run.commands.length > 0 &&
          details(`${run.commands.length} commands of this run`, ...run.commands.map(commandOf)),
        run.events && run.events.rows.length > 0 && details(`${run.events.rows.length} events`, tableOf(run.events)),
      ),
      el(
        "section",
        { id: `metadata-${index}` },
        el(level, {}, "Metadata"),
        run.facts.length > 0 &&
          el(
            "dl",
            { class: "facts" },
            ...run.facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
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

  private panels(panels: readonly Panel[], selection: Selection, level: 3 | 4): HTMLElement[] {
    const links = new Map<string, Link>();
    return panels.map((panel) => {
      // A panel without a link has its own range and cursor.
      const name = panel.link || `alone:${panel.key}`;
      const link = links.get(name) ?? new Link();
      links.set(name, link);
      const view = new PanelView(panel, this.columns, link, selection, this.theme, level);
      try {
        view.load();
      } catch (error) {
        if (!(error instanceof PackedError)) throw error;
        return el(
          "figure",
          { class: "panel" },
          el("figcaption", {}, el("h3", {}, panel.title)),
          el("p", { class: "damage" }, `Not drawn: ${error.message}.`),
        );
      }
      this.views.push(view);
      if (!panel.folded) return view.root;
      return el(
        "details",
        { class: "more folded" },
        el("summary", {}, el("strong", {}, panel.title), ` ${panel.folded}`),
        view.root,
      );
    });
  }
}

function list(items: readonly string[]): HTMLElement {
  return el("ul", {}, ...items.map((item) => el("li", {}, item)));
}

function details(title: string, ...inside: Child[]): HTMLElement {
  return el("details", { class: "more" }, el("summary", {}, title), ...inside);
}

function figureOf(figure: Figure): HTMLElement {
  return el(
    "div",
    { class: "figure" },
    el("span", { class: "label" }, figure.label),
    el("span", { class: "big" }, figure.value, figure.unit && el("span", { class: "unitword" }, ` ${figure.unit}`)),
    figure.note && el("span", { class: "note" }, figure.note),
  );
}

function tableOf(table: Table): HTMLElement {
  // Right-align a column of numbers and of signs for missing numbers.
  const numeric = table.columns.map(
    (_, i) =>
      i > 0 &&
      table.rows.every(
        (row) =>
          /^[\u2212\u2013\d.,\s%a-zµ/±<>≤≥-]*$/i.test(row[i] ?? "") && /^[\u2212\u2013\d<>±≤≥-]|^$/.test(row[i] ?? ""),
      ),
  );
  const cell = (tag: "td" | "th", text: string, i: number): HTMLElement =>
    el(tag, { class: numeric[i] ? "number" : null, scope: tag === "th" ? "col" : null }, text);
  return el(
    "div",
    { class: "table", role: "region", tabindex: 0, "aria-label": table.title },
    el(
      "table",
      {},
      el("caption", {}, table.title),
      el("thead", {}, el("tr", {}, ...table.columns.map((name, i) => cell("th", name, i)))),
      el(
        "tbody",
        {},
        ...table.rows.map((row) =>
          el("tr", {}, ...row.map((text, i) => (i === 0 ? el("th", { scope: "row" }, text) : cell("td", text, i)))),
        ),
      ),
    ),
    ...table.notes.map((note) => el("p", { class: "note" }, note)),
  );
}

function words(text: string): HTMLElement {
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

function commandOf(command: Command): HTMLElement {
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
