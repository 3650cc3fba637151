// SPDX-License-Identifier: MIT OR Apache-2.0
import "uplot/dist/uPlot.min.css";
import "../style.css";
import "./explore.css";
import { list, pair, paletteOf, text, type Dict, type Palette } from "../data";
import { el, must } from "../dom";
import { colourSheet, Theme, themeButton } from "../theme";
import { Api, Gone, Refusal, type Source } from "./api";
import { Compare } from "./compare";
import { Metadata } from "./metadata";
import { Picture, type About } from "./picture";
import { isCondition, type Cell, type Row } from "./rows";
import { setting } from "./settings";
import { Site } from "./site";
import { read, TABS, write, type State, type Tab } from "./state";
import { Table, type TableData } from "./table";

const RETRY_MS = 2000;
const TAB_WORDS: Record<Tab, string> = { picture: "Picture", compare: "Compare", metadata: "Metadata" };
const KEYS: [string, string][] = [
  ["j, k", "the next, the previous run: of the table, or of those shown one at a time"],
  ["], [", "the next, the previous plot"],
  ["1, 2, 3", "picture, comparison, metadata"],
  ["o", "one at a time, or over each other"],
  ["/", "search"],
  ["?", "this list"],
];

class Explorer {
  private readonly table: Table;
  private readonly picture: Picture;
  private readonly compare: Compare;
  private readonly metadata: Metadata;
  private readonly gone = el("div", { class: "damage gone", role: "alert", hidden: true });
  private readonly help = el(
    "dialog",
    { "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    el("dl", { class: "keys" }, ...KEYS.map(([key, does]) => el("div", {}, el("dt", {}, key), el("dd", {}, does)))),
    el("form", { method: "dialog" }, el("button", { type: "submit" }, "Close")),
  );
  private readonly tabs = new Map<Tab, HTMLButtonElement>();
  private readonly panel = el("div", { role: "tabpanel", id: "tabpanel" });
  private version = "";
  private asking = 0;
  private columns: string[] = [];

  constructor(
    private readonly api: Source,
    private readonly state: State,
    theme: Theme,
    about: About & { generator: string; directory: string; keys: string[] },
  ) {
    const failed = (error: unknown): void => this.failed(error);
    const changed = (): void => this.changed();
    const picked = (): void => this.picked();
    this.columns = about.keys;
    this.table = new Table(state, { picked, changed, ask: () => void this.load(), offer: () => this.offered() });
    this.picture = new Picture(api, state, theme, about, { picked, changed, failed });
    this.compare = new Compare(api, state, theme, about.colors, { changed, failed });
    this.metadata = new Metadata(api, state, { column: (name) => this.table.add(name), failed });
    document.title = `${about.directory}: ktrxer view`;
    const bar = el("div", { class: "tabs", role: "tablist", "aria-label": "View" });
    this.compare.root.hidden = true;
    for (const tab of TABS) {
      if (tab === "compare" && !api.live) continue;
      const node = el(
        "button",
        { type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": "tabpanel" },
        TAB_WORDS[tab],
      );
      node.addEventListener("click", () => this.turn(tab));
      this.tabs.set(tab, node);
      bar.append(node);
    }
    bar.addEventListener("keydown", (event) => this.tabKey(event));
    this.panel.append(this.picture.root, this.compare.root, this.metadata.root);
    const keys = el("button", { type: "button", class: "theme", title: "Keys", "aria-label": "Keys" }, "?");
    keys.addEventListener("click", () => this.help.showModal());
    const root = must(document.getElementById("root"), "the element #root of this page");
    root.replaceChildren(
      el(
        "header",
        { class: "top" },
        el("a", { class: "skip", href: "#pane" }, "Skip to the picture"),
        el("span", { class: "brand" }, "ktrxer"),
        el("h1", { class: "where", title: about.directory }, about.directory),
        keys,
        themeButton(theme),
      ),
      this.gone,
      el(
        "div",
        { class: "explorer" },
        this.table.root,
        el(
          "main",
          { id: "pane", tabindex: -1 },
          bar,
          this.panel,
          el(
            "footer",
            {},
            `${about.generator}. `,
            api.live
              ? "The explorer runs on this machine and sends nothing elsewhere."
              : "This page has all of its data in it and fetches nothing.",
          ),
        ),
      ),
      this.help,
    );
    // A link in this page to one of its parts would replace the view in the address.
    root.querySelector(".skip")?.addEventListener("click", (event) => {
      event.preventDefault();
      document.getElementById("pane")?.focus();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    // Paper has no view into which a panel could come.
    addEventListener("beforeprint", () => {
      if (state.tab === "picture") this.picture.drawAll();
      if (state.tab === "compare") this.compare.drawAll();
    });
    addEventListener("hashchange", () => {
      Object.assign(state, viewOf(location.hash, api), { token: state.token });
      void this.load().then(() => this.turn(state.tab));
    });
  }

  async start(): Promise<void> {
    await this.load();
    this.turn(this.state.tab);
    if (this.api.live) void this.watch();
  }

  /** Get the table. */
  async load(): Promise<void> {
    const number = ++this.asking;
    this.changed();
    const { state } = this;
    try {
      const where = isCondition(state.search) ? state.search : "";
      const answer = await this.api.json("runs", { columns: state.columns, where });
      if (number !== this.asking) return;
      this.version = text(answer.version, "version");
      this.back();
      this.table.show(tableData(answer));
      this.renamed();
    } catch (error) {
      if (number !== this.asking) return;
      if (error instanceof Refusal) {
        this.table.fail(error.message);
        // A column that no run has would make each later request fail, too.
        state.columns = state.columns.filter((one) => !error.columns.includes(one));
      } else this.failed(error);
    }
  }

  /** A run that was being recorded has another name when it is finished; a run that was removed leaves the picture. */
  private renamed(): void {
    if (isCondition(this.state.search)) return; // other runs exist and are not in this table
    const there = new Set(this.table.rows.map((row) => row.name));
    this.state.runs = [
      ...new Set(this.state.runs.map((name) => (there.has(name) ? name : name.replace(/\.part$/, "")))),
    ].filter((name) => there.has(name));
    this.changed();
  }

  /** Wait for changes of the directory. */
  private async watch(): Promise<void> {
    for (;;) {
      try {
        const answer = await this.api.json("changes", { since: this.version });
        this.back();
        if (text(answer.version, "version") !== this.version) {
          const before = this.open();
          await this.load();
          // A run in the picture may be another one now; finished ones are the same bytes.
          if (before || this.open()) this.turn(this.state.tab);
        }
      } catch (error) {
        this.failed(error);
        await new Promise((done) => setTimeout(done, RETRY_MS));
      }
    }
  }

  /** Whether a run in the picture is still being recorded. */
  private open(): boolean {
    return this.table.rows.some((row) => row.state !== "finished" && this.state.runs.includes(row.name));
  }

  private picked(): void {
    const { state } = this;
    state.shown = Math.min(state.shown, Math.max(0, state.runs.length - 1));
    this.changed();
    this.table.refresh();
    this.turn(state.tab);
  }

  private turn(wanted: Tab): void {
    const tab = this.tabs.has(wanted) ? wanted : "picture";
    this.state.tab = tab;
    for (const [name, node] of this.tabs) {
      node.setAttribute("aria-selected", String(name === tab));
      node.tabIndex = name === tab ? 0 : -1;
      this[name].root.hidden = name !== tab;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${tab}`);
    this.changed();
    void this[tab].show();
  }

  /** The arrow keys turn the tabs, of which only the selected one is a stop of the Tab key (WAI-ARIA, tabs). */
  private tabKey(event: KeyboardEvent): void {
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (step === 0) return;
    const names = [...this.tabs.keys()];
    const next = names[(names.indexOf(this.state.tab) + step + names.length) % names.length] ?? "picture";
    this.turn(next);
    this.tabs.get(next)?.focus();
    event.preventDefault();
  }

  private changed(): void {
    history.replaceState(null, "", write(this.state));
  }

  private failed(error: unknown): void {
    if (error instanceof Refusal) return; // the part that asked shows it
    this.gone.hidden = false;
    this.gone.textContent =
      error instanceof Gone
        ? "The explorer's server has ended. What is drawn stays. Start `ktrxer view` again and open its new address."
        : `The answer of the server cannot be shown: ${error instanceof Error ? error.message : String(error)}.`;
  }

  private back(): void {
    this.gone.hidden = true;
  }

  private async offered(): Promise<string[]> {
    const { state } = this;
    const run = state.runs[0] ?? this.table.rows.find((row) => row.state === "finished")?.name;
    if (run === undefined) return this.columns;
    try {
      const answer = await this.api.json("keys", { runs: [run] });
      return [...new Set([...this.columns, ...list(answer.keys, "keys", text)])];
    } catch {
      return this.columns;
    }
  }

  private key(event: KeyboardEvent): void {
    const from = event.target instanceof Element ? event.target : null;
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open) return;
    if (from?.closest("input:not([type=checkbox]), select, textarea")) return;
    const { state } = this;
    switch (event.key) {
      case "j":
      case "k": {
        const step = event.key === "j" ? 1 : -1;
        if (state.tab === "picture" && state.arrange === "one" && state.runs.length > 1) this.picture.turnRun(step);
        else {
          const next = this.table.after(state.runs[state.runs.length - 1], step);
          if (next === undefined) return;
          state.runs = [next];
          this.picked();
          this.table.reveal(next);
        }
        break;
      }
      case "[":
      case "]":
        this.turn("picture");
        this.picture.turnPlot(event.key === "]" ? 1 : -1);
        break;
      case "o":
        if (!this.api.live) return;
        state.arrange = state.arrange === "one" ? "overlay" : "one";
        this.turn("picture");
        break;
      case "1":
      case "2":
      case "3":
        this.turn(TABS[Number(event.key) - 1] ?? "picture");
        break;
      case "/":
        this.table.focusSearch();
        break;
      case "?":
        this.help.showModal();
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}

function cell(value: unknown): Cell {
  return typeof value === "string" || typeof value === "number" ? value : null;
}

function tableData(answer: Dict): TableData {
  return {
    note: text(answer.note, "note"),
    columns: list(answer.columns, "columns", text),
    rows: list(answer.rows, "rows", (value, path): Row => {
      const [name, state, ...cells] = list(value, path, cell);
      return { name: text(name, path), state: text(state, path), cells };
    }),
  };
}

function complain(what: string): void {
  const root = must(document.getElementById("root"), "the element #root of this page");
  root.replaceChildren(
    el("main", {}, el("h1", {}, "ktrxer view"), el("div", { class: "damage", role: "alert" }, what)),
  );
}

/** An exported page draws each plot of each run as it is. */
function viewOf(hash: string, source: Source): State {
  const state = read(hash);
  if (!source.live) {
    state.arrange = "one";
    state.settings.clear();
  }
  return state;
}

async function start(): Promise<void> {
  const site = Site.here();
  const api = site ?? new Api(read(location.hash).token);
  const state = viewOf(location.hash || (site?.view ?? ""), api);
  if (api.live && !state.token) {
    complain("The address has no token. Open the whole address that `ktrxer view` has printed.");
    return;
  }
  const about = await api.json("about");
  const palette: Palette = paletteOf(about.palette);
  const theme = new Theme(palette);
  document.adoptedStyleSheets = [colourSheet(theme, palette)];
  const explorer = new Explorer(api, state, theme, {
    generator: text(about.generator, "generator"),
    directory: text(about.directory, "directory"),
    plots: list(about.plots, "plots", pair),
    arranges: list(about.arranges, "arranges", pair),
    settings: list(about.settings, "settings", setting),
    keys: list(about.keys, "keys", text),
    colors: palette.light.length,
  });
  await explorer.start();
}

start().then(
  () => (document.documentElement.dataset.ready = "yes"),
  (error: unknown) => {
    complain(error instanceof Error ? `${error.message}.` : String(error));
    document.documentElement.dataset.ready = "failed";
  },
);
