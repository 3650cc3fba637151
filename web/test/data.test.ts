// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { DataError, SCHEMA, parse } from "../src/data";

const axis = { label: "Time", unit: "s", scale: "linear", zero: false, most: null, least: null, names: [] };
const series = {
  key: "k",
  label: "l",
  style: "line",
  color: 0,
  dash: [],
  width: 1,
  x: 0,
  y: 0,
  low: null,
  high: null,
  z: null,
  axis: 1,
  lost: null,
  hidden: false,
  hint: "",
};
const panel = {
  key: "p",
  title: "t",
  x: axis,
  y: axis,
  y2: null,
  link: "time",
  log: "y",
  bands: [],
  series: [series],
  rows: [],
  notes: [],
  folded: "",
  legend: true,
};
const run = {
  title: "",
  subtitle: "",
  verdict: "valid",
  headline: { kind: "none", text: "", details: [] },
  reasons: [
    { id: "of_a_newer_version", text: "the moon was full", severity: "degraded", cause: "moon", n: 5, names: ["a"] },
  ],
  damage: [],
  facts: [],
  figures: [],
  tables: [],
  panels: [panel],
  commands: [],
  repeat: [],
  events: null,
  metadata: {},
};
const report = {
  schema: SCHEMA,
  title: "",
  generator: "",
  created: "",
  palette: { light: ["#000"], dark: ["#fff"] },
  arrays: [{ type: "f32", count: 0, base: 0, scale: 1, data: "" }],
  overview: null,
  runs: [run],
};

/** A copy with one value, found by its path, replaced. */
function changed(path: (string | number)[], value: unknown): string {
  const copy: unknown = structuredClone(report);
  let at = copy as Record<string | number, unknown>;
  for (const name of path.slice(0, -1)) at = at[name] as Record<string | number, unknown>;
  at[path[path.length - 1] as string] = value;
  return JSON.stringify(copy);
}

describe("the reader of a report", () => {
  it("accepts a complete report", () =>
    expect(parse(JSON.stringify(report)).runs[0]?.panels[0]?.series[0]?.key).toBe("k"));

  it("names the error of a truncated report", () => {
    expect(() => parse(JSON.stringify(report).slice(0, 100))).toThrow(/truncated/);
    expect(() => parse("")).toThrow(DataError);
  });

  it.each<[string, (string | number)[], unknown]>([
    ["another schema", ["schema"], "ktrxer-report/9"],
    ["no runs", ["runs"], null],
    ["a verdict that is no word of ours", ["runs", 0, "verdict"], "<b>"],
    ["a column that is not there", ["runs", 0, "panels", 0, "series", 0, "y"], 7],
    ["a colour that is not there", ["runs", 0, "panels", 0, "series", 0, "color"], 1],
    ["an index that is no index", ["runs", 0, "panels", 0, "series", 0, "x"], "0"],
    ["an unknown style", ["runs", 0, "panels", 0, "series", 0, "style"], "constructor"],
    ["a title that is no text", ["runs", 0, "title"], { toString: "x" }],
    ["an unknown scale", ["runs", 0, "panels", 0, "x", "scale"], "__proto__"],
    ["a width that is not a number", ["runs", 0, "panels", 0, "series", 0, "width"], null],
    ["palettes of two lengths", ["palette", "dark"], []],
    ["a column of a strange type", ["arrays", 0, "type"], "f16"],
    ["a count below zero", ["arrays", 0, "count"], -1],
  ])("refuses %s", (_name, path, value) => {
    expect(() => parse(changed(path, value))).toThrow(DataError);
  });

  it("sets no prototype from metadata", () => {
    const parsed = parse(JSON.stringify(report).replace('"metadata":{}', '"metadata":{"__proto__":{"polluted":1}}'));
    expect(({} as Record<string, unknown>).polluted).toBe(undefined);
    expect(Object.keys(parsed.runs[0]?.metadata as object)).toEqual(["__proto__"]);
  });
});
