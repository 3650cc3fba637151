// SPDX-License-Identifier: MIT OR Apache-2.0
// The types of a report's data, and their only parser. python/ktrxer/view/report.py writes the data. A report may be
// truncated, edited or of unknown origin: the parser checks every value, so the rest of the page relies on these types.

import type { PackedArray } from "./arrays";

export interface Axis {
  label: string;
  unit: string;
  scale: "linear" | "log";
  /** Whether the axis begins at zero. */
  zero: boolean;
  /** The end of the axis if samples lie above it; null: the axis contains all samples. */
  most: number | null;
  /** Likewise the begin of the axis. */
  least: number | null;
  /** Names of the positions 0, 1, 2, ... instead of numbers. */
  names: string[];
}

export interface Band {
  from: number;
  to: number;
  label: string;
  kind: "idle" | "load";
}

export interface Series {
  /** The same key in two panels means the same flow or probe: both are hidden and highlighted together. */
  key: string;
  label: string;
  style: "line" | "step" | "points" | "box" | "bar" | "outline" | "heat";
  color: number;
  dash: number[];
  width: number;
  x: number;
  y: number;
  low: number | null;
  high: number | null;
  /** Only of a heat map: the shares, row by row. */
  z: number | null;
  /** The axis of y: 2 is the right one. */
  axis: 1 | 2;
  lost: number | null;
  hidden: boolean;
  hint: string;
}

/** Events in a row of their own above the plot. */
export interface EventRow {
  label: string;
  kind: "drop" | "mark" | "retransmit";
  color: number;
  x: number;
}

export interface Panel {
  key: string;
  title: string;
  x: Axis;
  y: Axis;
  y2: Axis | null;
  /** Panels with the same link share their x axis and cursor. */
  link: string;
  /** The axis that the page can switch to a logarithmic scale. */
  log: "x" | "y";
  bands: Band[];
  series: Series[];
  rows: EventRow[];
  notes: string[];
  /** Why the panel has no news; "": it is shown at first. */
  folded: string;
  /** The names of the series are shown. */
  legend: boolean;
}

export interface Table {
  title: string;
  columns: string[];
  rows: string[][];
  notes: string[];
}

export interface Figure {
  label: string;
  value: string;
  unit: string;
  note: string;
}

/** Why a figure is in doubt (docs/reference/reasons.md). */
export interface Reason {
  id: string;
  text: string;
  severity: string;
  cause: string;
  /** The words and numbers of the sentence, and the names of processes. */
  values: [string, string][];
}

export interface Command {
  name: string;
  host: string;
  outcome: string;
  ended: boolean;
  words: string;
  output: string;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Run {
  title: string;
  subtitle: string;
  verdict: "valid" | "degraded" | "invalid" | "unknown";
  /** What the run shows, in words. */
  headline: { kind: string; text: string; details: string[] };
  reasons: Reason[];
  damage: string[];
  facts: [string, string][];
  figures: Figure[];
  tables: Table[];
  panels: Panel[];
  commands: Command[];
  repeat: string[];
  events: Table | null;
  metadata: Json;
}

/** Before the runs, where there are several: the answer in words, and what compares the runs. */
export interface Overview {
  sentences: string[];
  tables: Table[];
  panels: Panel[];
}

export interface Report {
  title: string;
  generator: string;
  created: string;
  palette: Palette;
  arrays: PackedArray[];
  overview: Overview | null;
  runs: Run[];
}

export class DataError extends Error {}

export const SCHEMA = "ktrxer-report/1";

export type Dict = Record<string, unknown>;

export function fail(path: string, wanted: string): never {
  throw new DataError(`${path} is not ${wanted}`);
}

export function dict(value: unknown, path: string): Dict {
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail(path, "an object");
  return value as Dict;
}

export function list<T>(value: unknown, path: string, one: (value: unknown, path: string) => T): T[] {
  if (!Array.isArray(value)) fail(path, "a list");
  return value.map((item, i) => one(item, `${path}[${i}]`));
}

export function text(value: unknown, path: string): string {
  if (typeof value !== "string") fail(path, "text");
  return value;
}

export function flag(value: unknown, path: string): boolean {
  if (typeof value !== "boolean") fail(path, "true or false");
  return value;
}

export function finite(value: unknown, path: string): number {
  if (typeof value !== "number" || !Number.isFinite(value)) fail(path, "a finite number");
  return value;
}

export function index(value: unknown, path: string, below = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value >= below) fail(path, "an index");
  return value;
}

function oneOf<T extends string>(value: unknown, path: string, words: readonly T[]): T {
  if (typeof value !== "string" || !(words as readonly string[]).includes(value))
    fail(path, `one of ${words.join(", ")}`);
  return value as T;
}

export function pair(value: unknown, path: string): [string, string] {
  const both = list(value, path, text);
  if (both.length !== 2) fail(path, "a pair");
  return [both[0] as string, both[1] as string];
}

export function packedHead(value: unknown, path: string): Omit<PackedArray, "data"> {
  const a = dict(value, path);
  return {
    type: oneOf(a.type, `${path}.type`, ["f32", "f64", "i32", "i24"]),
    count: index(a.count, `${path}.count`),
    base: finite(a.base, `${path}.base`),
    scale: finite(a.scale, `${path}.scale`),
  };
}

function packed(value: unknown, path: string): PackedArray {
  return { ...packedHead(value, path), data: text(dict(value, path).data, `${path}.data`) };
}

function axis(value: unknown, path: string): Axis {
  const a = dict(value, path);
  return {
    label: text(a.label, `${path}.label`),
    unit: text(a.unit, `${path}.unit`),
    scale: oneOf(a.scale, `${path}.scale`, ["linear", "log"]),
    zero: flag(a.zero, `${path}.zero`),
    most: a.most === null ? null : finite(a.most, `${path}.most`),
    least: a.least === null ? null : finite(a.least, `${path}.least`),
    names: list(a.names, `${path}.names`, text),
  };
}

export function table(value: unknown, path: string): Table {
  const t = dict(value, path);
  return {
    title: text(t.title, `${path}.title`),
    columns: list(t.columns, `${path}.columns`, text),
    rows: list(t.rows, `${path}.rows`, (row, where) => list(row, where, text)),
    notes: list(t.notes, `${path}.notes`, text),
  };
}

export function panelReader(arrays: number, colors: number): (value: unknown, path: string) => Panel {
  const column = (value: unknown, path: string): number => index(value, path, arrays);
  const maybe = (value: unknown, path: string): number | null => (value === null ? null : column(value, path));

  const series = (value: unknown, path: string): Series => {
    const s = dict(value, path);
    return {
      key: text(s.key, `${path}.key`),
      label: text(s.label, `${path}.label`),
      style: oneOf(s.style, `${path}.style`, ["line", "step", "points", "box", "bar", "outline", "heat"]),
      color: index(s.color, `${path}.color`, colors),
      dash: list(s.dash, `${path}.dash`, finite),
      width: finite(s.width, `${path}.width`),
      x: column(s.x, `${path}.x`),
      y: column(s.y, `${path}.y`),
      low: maybe(s.low, `${path}.low`),
      high: maybe(s.high, `${path}.high`),
      z: maybe(s.z, `${path}.z`),
      axis: s.axis === 2 ? 2 : 1,
      lost: maybe(s.lost, `${path}.lost`),
      hidden: flag(s.hidden, `${path}.hidden`),
      hint: text(s.hint, `${path}.hint`),
    };
  };

  const band = (value: unknown, path: string): Band => {
    const b = dict(value, path);
    return {
      from: finite(b.from, `${path}.from`),
      to: finite(b.to, `${path}.to`),
      label: text(b.label, `${path}.label`),
      kind: oneOf(b.kind, `${path}.kind`, ["idle", "load"]),
    };
  };

  const row = (value: unknown, path: string): EventRow => {
    const r = dict(value, path);
    return {
      label: text(r.label, `${path}.label`),
      kind: oneOf(r.kind, `${path}.kind`, ["drop", "mark", "retransmit"]),
      color: index(r.color, `${path}.color`, colors),
      x: column(r.x, `${path}.x`),
    };
  };

  return (value, path) => {
    const p = dict(value, path);
    return {
      key: text(p.key, `${path}.key`),
      title: text(p.title, `${path}.title`),
      x: axis(p.x, `${path}.x`),
      y: axis(p.y, `${path}.y`),
      y2: p.y2 === null ? null : axis(p.y2, `${path}.y2`),
      link: text(p.link, `${path}.link`),
      log: oneOf(p.log, `${path}.log`, ["x", "y"]),
      bands: list(p.bands, `${path}.bands`, band),
      series: list(p.series, `${path}.series`, series),
      rows: list(p.rows, `${path}.rows`, row),
      notes: list(p.notes, `${path}.notes`, text),
      folded: text(p.folded, `${path}.folded`),
      legend: flag(p.legend, `${path}.legend`),
    };
  };
}

export interface Palette {
  light: string[];
  dark: string[];
}

export function paletteOf(value: unknown): Palette {
  const colors = dict(value, "palette");
  const made = { light: list(colors.light, "palette.light", text), dark: list(colors.dark, "palette.dark", text) };
  if (made.light.length === 0 || made.light.length !== made.dark.length) fail("palette", "two lists of one length");
  return made;
}

const OF_REASON = ["id", "text", "severity", "cause"];

export function reason(value: unknown, path: string): Reason {
  const one = dict(value, path);
  const rest = Object.entries(one).filter(([name]) => !OF_REASON.includes(name));
  return {
    id: text(one.id, `${path}.id`),
    text: text(one.text, `${path}.text`),
    severity: text(one.severity, `${path}.severity`),
    cause: text(one.cause, `${path}.cause`),
    values: rest.map(([name, found]) => [name, Array.isArray(found) ? found.join(", ") : String(found ?? "\u2013")]),
  };
}

export function parse(source: string): Report {
  let whole: unknown;
  try {
    whole = JSON.parse(source);
  } catch {
    throw new DataError("the data of this report are not JSON: the file is truncated or was changed");
  }
  const r = dict(whole, "the report");
  if (r.schema !== SCHEMA) fail("the report's schema", SCHEMA);
  const palette = paletteOf(r.palette);
  const arrays = list(r.arrays, "arrays", packed);
  const panel = panelReader(arrays.length, palette.light.length);

  const run = (value: unknown, path: string): Run => {
    const one = dict(value, path);
    const words = dict(one.headline, `${path}.headline`);
    return {
      headline: {
        kind: text(words.kind, `${path}.headline.kind`),
        text: text(words.text, `${path}.headline.text`),
        details: list(words.details, `${path}.headline.details`, text),
      },
      title: text(one.title, `${path}.title`),
      subtitle: text(one.subtitle, `${path}.subtitle`),
      verdict: oneOf(one.verdict, `${path}.verdict`, ["valid", "degraded", "invalid", "unknown"]),
      reasons: list(one.reasons, `${path}.reasons`, reason),
      damage: list(one.damage, `${path}.damage`, text),
      facts: list(one.facts, `${path}.facts`, pair),
      figures: list(one.figures, `${path}.figures`, (item, where) => {
        const f = dict(item, where);
        return {
          label: text(f.label, `${where}.label`),
          value: text(f.value, `${where}.value`),
          unit: text(f.unit, `${where}.unit`),
          note: text(f.note, `${where}.note`),
        };
      }),
      tables: list(one.tables, `${path}.tables`, table),
      panels: list(one.panels, `${path}.panels`, panel),
      commands: list(one.commands, `${path}.commands`, (item, where) => {
        const c = dict(item, where);
        return {
          name: text(c.name, `${where}.name`),
          host: text(c.host, `${where}.host`),
          outcome: text(c.outcome, `${where}.outcome`),
          ended: flag(c.ended, `${where}.ended`),
          words: text(c.words, `${where}.words`),
          output: text(c.output, `${where}.output`),
        };
      }),
      repeat: list(one.repeat, `${path}.repeat`, text),
      events: one.events === null ? null : table(one.events, `${path}.events`),
      metadata: one.metadata as Json, // any JSON: tree.ts shows each value by its type
    };
  };

  let overview: Report["overview"] = null;
  if (r.overview !== null) {
    const o = dict(r.overview, "overview");
    overview = {
      sentences: list(o.sentences, "overview.sentences", text),
      tables: list(o.tables, "overview.tables", table),
      panels: list(o.panels, "overview.panels", panel),
    };
  }
  return {
    title: text(r.title, "title"),
    generator: text(r.generator, "generator"),
    created: text(r.created, "created"),
    palette,
    arrays,
    overview,
    runs: list(r.runs, "runs", run),
  };
}
