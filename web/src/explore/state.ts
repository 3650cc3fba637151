// SPDX-License-Identifier: MIT OR Apache-2.0
// The state of the explorer, as the part of its address behind #: a link opens the same view again.

export const TABS = ["picture", "compare", "metadata"] as const;
export type Tab = (typeof TABS)[number];

export interface State {
  token: string;
  /** Names of the picked runs. */
  runs: string[];
  plot: string;
  /** How the runs stand in the picture; "one": one at a time. */
  arrange: string;
  /** The place of the run in `runs`, where `one` is set. */
  shown: number;
  /** Settings of the picture (settings.ts): everything in the address that has none of the other names. */
  settings: Map<string, string[]>;
  /** The part of the time that is in view; null: all. */
  range: [number, number] | null;
  search: string;
  /** Further columns of the table. */
  columns: string[];
  sort: string;
  facets: Map<string, string>;
  tab: Tab;
  /** Of the comparison: the property that makes groups, and the two groups. */
  by: string;
  a: string;
  b: string;
  all: boolean;
}

const OTHERS = new Set(
  ("token run plot arrange shown from to search column sort facet tab by a b all").split(" "),
);

export function read(hash: string): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name: string): string => (given.get(name) ?? "").slice(0, 4000);
  const number = (name: string): number => Number(given.get(name) ?? NaN);
  const [from, to] = [number("from"), number("to")];
  const tab = text("tab");
  const settings = new Map<string, string[]>();
  for (const name of new Set(given.keys())) {
    const texts = given.getAll(name).filter((one) => one !== "");
    if (!OTHERS.has(name) && texts.length > 0) settings.set(name, texts);
  }
  return {
    token: text("token"),
    runs: [...new Set(given.getAll("run"))],
    plot: text("plot"),
    arrange: text("arrange") || "overlay",
    shown: Math.max(0, Math.trunc(number("shown")) || 0),
    settings,
    range: Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null,
    search: text("search"),
    columns: [...new Set(given.getAll("column"))].slice(0, 40),
    sort: text("sort"),
    facets: new Map(
      given.getAll("facet").map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)] as const),
    ),
    tab: TABS.find((one) => one === tab) ?? "picture",
    by: text("by"),
    a: text("a"),
    b: text("b"),
    all: given.get("all") === "yes",
  };
}

export function write(state: State): string {
  const made = new URLSearchParams();
  const set = (name: string, value: string, usual = ""): void => {
    if (value !== usual) made.append(name, value);
  };
  set("token", state.token);
  for (const name of state.runs) made.append("run", name);
  set("plot", state.plot);
  set("arrange", state.arrange, "overlay");
  if (state.arrange === "one") set("shown", String(state.shown), "0");
  for (const [name, texts] of state.settings) for (const one of texts) made.append(name, one);
  if (state.range) {
    set("from", String(state.range[0]));
    set("to", String(state.range[1]));
  }
  set("search", state.search);
  for (const name of state.columns) made.append("column", name);
  set("sort", state.sort);
  for (const [key, value] of state.facets) made.append("facet", `${key}=${value}`);
  set("tab", state.tab, "picture");
  set("by", state.by);
  set("a", state.a);
  set("b", state.b);
  if (state.all) set("all", "yes");
  return `#${made.toString()}`;
}
