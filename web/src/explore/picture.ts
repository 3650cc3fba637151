// SPDX-License-Identifier: MIT OR Apache-2.0
// The picture of the picked runs: plot, arrangement, panels, and what can be saved of it.

import { panelReader, list, pair, text, type Panel } from "../data";
import { button, el } from "../dom";
import { Selection, type Link } from "../link";
import { words } from "../parts";
import { Sheet } from "../sheet";
import type { Theme } from "../theme";
import type { Binary, Source } from "./api";
import { Settings, type Setting } from "./settings";
import type { State } from "./state";

export interface About {
  plots: [string, string][];
  arranges: [string, string][];
  settings: Setting[];
  colors: number;
}

const REFINE_MS = 150; // after the last move of the view
const KINDS = ["svg", "pdf", "png", "csv", "json"] as const;

export class Picture {
  readonly root: HTMLElement;
  private readonly stage = el("div", { class: "stage" });
  private readonly title = el("div", { class: "picture-title" });
  private readonly problems = el("div");
  private readonly foot = el("div", { class: "foot" });
  private readonly drawing = el("p", { class: "empty drawing", role: "status" });
  private readonly plots: HTMLSelectElement;
  private readonly arrange: HTMLSelectElement;
  private readonly settings: Settings;
  private readonly chips = el("div", { class: "chips", role: "group", "aria-label": "Runs in the picture" });
  private sheet: Sheet | null = null;
  private selection = new Selection();
  private running: AbortController | null = null;
  private refining = 0;
  private command = "";

  constructor(
    private readonly api: Source,
    private readonly state: State,
    private readonly theme: Theme,
    private readonly about: About,
    private readonly act: { picked(): void; changed(): void; failed(error: unknown): void },
  ) {
    const option = (value: string, label: string): HTMLElement => el("option", { value }, label);
    this.plots = el(
      "select",
      { "aria-label": "Plot" },
      option("", "the run's first plot"),
      ...about.plots.map(([name, summary]) => option(name, `${name}: ${summary}`)),
    );
    this.arrange = el(
      "select",
      { "aria-label": "How the runs stand in the picture" },
      ...about.arranges.slice(0, 2).map(([name, label]) => option(name, label)),
      option("one", "one at a time"),
      ...about.arranges.slice(2).map(([name, label]) => option(name, label)),
    );
    const changed = (): void => {
      this.act.changed();
      void this.show();
    };
    this.settings = new Settings(about.settings, state, changed);
    const bind = (node: HTMLSelectElement, set: (value: string) => void): void =>
      node.addEventListener("change", () => {
        set(node.value);
        changed();
      });
    bind(this.plots, (value) => (state.plot = value));
    bind(this.arrange, (value) => (state.arrange = value));
    this.root = el(
      "section",
      { class: "picture", "aria-label": "Picture" },
      el(
        "div",
        { class: "controls" },
        el(
          "div",
          { class: "tools plot-choice" },
          button("\u2039", "Previous plot (key [)", () => this.turnPlot(-1)),
          this.plots,
          button("\u203a", "Next plot (key ])", () => this.turnPlot(1)),
        ),
        api.live && this.arrange,
        ...this.settings.first,
      ),
      this.settings.root,
      this.chips,
      this.problems,
      this.title,
      this.drawing,
      this.stage,
      this.foot,
    );
  }

  turnPlot(step: number): void {
    const names = this.about.plots.map(([name]) => name);
    const at = names.indexOf(this.state.plot);
    this.state.plot = names[(at + step + names.length) % names.length] ?? "";
    this.act.changed();
    void this.show();
  }

  /** The next of the picked runs, where they are shown one at a time. */
  turnRun(step: number): void {
    const { state } = this;
    state.shown = (Math.min(state.shown, state.runs.length - 1) + step + state.runs.length) % state.runs.length;
    this.act.changed();
    void this.show();
  }

  async show(): Promise<void> {
    const { state } = this;
    this.plots.value = state.plot;
    this.arrange.value = state.arrange;
    this.settings.show();
    this.running?.abort();
    clearTimeout(this.refining);
    this.say("");
    if (state.runs.length === 0) {
      this.chips.replaceChildren();
      this.replace([]);
      this.problems.replaceChildren();
      this.title.replaceChildren(
        el("p", { class: "empty" }, "Choose runs in the table: a click shows one, ticks add more."),
      );
      this.foot.replaceChildren();
      return;
    }
    const running = (this.running = new AbortController());
    this.stage.classList.add("waiting");
    if (!this.sheet) {
      this.title.replaceChildren();
      this.say(state.runs.length === 1 ? "Drawing the run\u2026" : `Drawing ${state.runs.length} runs\u2026`);
    }
    try {
      const answer = await this.api.binary("picture", this.asked(), running.signal);
      if (running.signal.aborted) return;
      this.take(answer);
    } catch (error) {
      if (running.signal.aborted) return;
      this.replace([]);
      this.title.replaceChildren();
      this.foot.replaceChildren();
      this.chipsOf(state.runs);
      this.problems.replaceChildren(
        el("div", { class: "reasons degraded", role: "alert" }, error instanceof Error ? error.message : String(error)),
      );
      this.act.failed(error);
    } finally {
      if (this.running === running) {
        this.stage.classList.remove("waiting");
        this.say("");
      }
    }
  }

  /** The text before the first picture. The element stays: a screen reader reads its changes. */
  private say(text: string): void {
    this.drawing.textContent = text;
    this.root.setAttribute("aria-busy", String(text !== ""));
  }

  /** A panel that was not in view yet is drawn now. */
  drawAll(): void {
    this.sheet?.drawAll();
  }

  /** Draw the runs again: one of them has grown. The view stays. */
  async follow(): Promise<void> {
    if (this.state.runs.length > 0) await this.show();
  }

  private asked(): Record<string, unknown> {
    const { state } = this;
    const one = state.arrange === "one";
    return {
      runs: state.runs,
      plot: state.plot,
      arrange: one ? "overlay" : state.arrange,
      settings: Object.fromEntries(state.settings),
      ...(one ? { shown: Math.min(state.shown, state.runs.length - 1) } : {}),
    };
  }

  private panelsOf({ data, arrays }: Binary): Panel[] {
    return list(data.panels, "panels", panelReader(arrays, this.about.colors));
  }

  private take(answer: Binary): void {
    const { data } = answer;
    const panels = this.panelsOf(answer);
    const hidden = this.selection.hidden;
    this.selection = new Selection();
    for (const panel of panels)
      for (const series of panel.series)
        if (series.hidden || hidden.has(series.key)) this.selection.hidden.add(series.key);
    this.replace(panels, answer);
    const columns = typeof data.columns === "number" ? data.columns : 1;
    this.stage.dataset.columns = String(Math.min(4, Math.max(1, columns)));
    this.title.replaceChildren(
      el("h2", {}, text(data.title, "title")),
      el("p", { class: "subtitle" }, text(data.subtitle, "subtitle")),
    );
    const problems = list(data.problems, "problems", text);
    this.problems.replaceChildren(
      ...(problems.length > 0
        ? [
            el(
              "div",
              { class: "reasons degraded", role: "status" },
              el("ul", {}, ...problems.map((one) => el("li", {}, one))),
            ),
          ]
        : []),
    );
    const labels = new Map(list(data.names, "names", pair));
    this.chipsOf(this.state.runs.map((name) => labels.get(name) ?? name));
    this.command = text(data.command, "command");
    this.foot.replaceChildren(
      el(
        "div",
        { class: "save tools", role: "toolbar", "aria-label": "Save" },
        this.api.live && el("span", { class: "note" }, "Save: "),
        ...(this.api.live ? KINDS : []).map((kind) =>
          button(kind.toUpperCase(), `Save as ${kind.toUpperCase()}`, () => void this.save(kind)),
        ),
        button("link", "Copy a link to this view", (event) => copied(event, location.href)),
      ),
      words(this.command),
    );
    if (data.reduced === true) this.refineOn();
  }

  private replace(panels: Panel[], answer?: Binary): void {
    const old = this.sheet;
    this.sheet = null;
    if (answer) {
      const sheet = (this.sheet = new Sheet(answer.columns, this.theme));
      this.stage.replaceChildren(...sheet.panels(panels, this.selection, 3));
      const time = sheet.links.get("time");
      if (time) {
        if (this.state.range) time.show(...this.state.range);
        time.onChange(() => {
          this.state.range = time.zoomed ? [...time.range] : null;
          this.act.changed();
        });
      }
      sheet.watch();
    } else this.stage.replaceChildren();
    old?.close();
  }

  /** The server has thinned series: when the view moves, get the samples of the part in view. */
  private refineOn(): void {
    const sheet = this.sheet;
    const time = sheet?.links.get("time");
    if (!sheet || !time) return;
    const again = (): void => {
      clearTimeout(this.refining);
      this.refining = window.setTimeout(() => void this.refine(sheet, time), REFINE_MS);
    };
    time.onChange(again);
    if (this.state.range) again();
  }

  private async refine(sheet: Sheet, time: Link): Promise<void> {
    const [from, to] = time.range;
    const width = to - from;
    this.running?.abort();
    const running = (this.running = new AbortController());
    try {
      // One width of the view on each side, so that a small move has its samples already.
      const range = time.zoomed ? { range: [from - width, to + width] } : {};
      const answer = await this.api.binary("picture", { ...this.asked(), ...range }, running.signal);
      if (running.signal.aborted || this.sheet !== sheet) return;
      const found = new Map(this.panelsOf(answer).map((panel) => [panel.key, panel]));
      for (const view of sheet.views) {
        const next = found.get(view.panel.key);
        const same = next && next.series.length === view.panel.series.length;
        if (same && next.link === "time") view.update(next, answer.columns);
      }
      this.stage.dataset.refined = String(Number(this.stage.dataset.refined ?? 0) + 1);
    } catch (error) {
      if (!running.signal.aborted) this.act.failed(error);
    }
  }

  private chipsOf(labels: string[]): void {
    const { state } = this;
    const one = state.arrange === "one" && state.runs.length > 1;
    this.chips.replaceChildren(
      ...(one
        ? [
            button("\u2039 run", "Previous run (key k)", () => this.turnRun(-1)),
            button("run \u203a", "Next run (key j)", () => this.turnRun(1)),
          ]
        : []),
      ...state.runs.map((name, i) =>
        el(
          "span",
          { class: `chip ${one && i === Math.min(state.shown, state.runs.length - 1) ? "current" : ""}`, title: name },
          one
            ? button(labels[i] ?? name, `Show ${name}`, () => {
                state.shown = i;
                this.act.changed();
                void this.show();
              })
            : (labels[i] ?? name),
          button("\u00d7", `Remove ${name} from the picture`, () => {
            state.runs = state.runs.filter((other) => other !== name);
            this.act.picked();
          }),
        ),
      ),
    );
  }

  private async save(kind: (typeof KINDS)[number]): Promise<void> {
    try {
      const blob = await this.api.file("save", { ...this.asked(), kind });
      const address = URL.createObjectURL(blob);
      const name = (this.state.plot || "picture").replace(/[^a-z0-9_-]+/gi, "-").slice(0, 60);
      const anchor = el("a", { href: address, download: `${name}.${kind}` });
      document.body.append(anchor);
      anchor.click();
      anchor.remove();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (error) {
      this.act.failed(error);
    }
  }
}

function copied(event: MouseEvent, value: string): void {
  const node = event.currentTarget as HTMLElement;
  void navigator.clipboard?.writeText(value).then(() => {
    node.textContent = "copied";
    setTimeout(() => (node.textContent = "link"), 1500);
  });
}
