// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { DataError } from "../src/data";
import { unpack } from "../src/explore/api";
import { facets, filtered, isCondition, searched, sorted, type Row } from "../src/explore/rows";
import { read, write } from "../src/explore/state";

const columns = ["title", "verdict", "length", "added"];
const rows: Row[] = [
  { name: "a.ktrxer", state: "finished", cells: ["fifo", "valid", "9 s", 80.5] },
  { name: "b.ktrxer", state: "finished", cells: ["fq_codel", "valid", "70 s", null] },
  { name: "c.ktrxer", state: "damaged", cells: [null, "damaged", null, null] },
  { name: "d.ktrxer", state: "finished", cells: ["fifo", "degraded", "100 s", -2] },
];
const names = (some: readonly Row[]): string => some.map((row) => row.name[0]).join("");

describe("the rows of the table", () => {
  it("are searched by words in any column", () => {
    expect(names(searched(rows, "FIFO valid"))).toBe("a");
    expect(names(searched(rows, "b.ktr"))).toBe("b");
    expect(names(searched(rows, " "))).toBe("abcd");
    expect(names(searched(rows, "80.5"))).toBe("a");
    expect(isCondition("fifo valid")).toBe(false);
    expect(isCondition("title=fifo")).toBe(true);
    expect(names(searched(rows, "title=fifo"))).toBe("abcd"); // the server has evaluated it
  });

  it("are sorted by value, with missing values last in both directions", () => {
    expect(names(sorted(rows, columns, "length"))).toBe("abdc");
    expect(names(sorted(rows, columns, "-length"))).toBe("dbac");
    expect(names(sorted(rows, columns, "added"))).toBe("dabc");
    expect(names(sorted(rows, columns, "-added"))).toBe("adbc");
    expect(names(sorted(rows, columns, "nonsense"))).toBe("abcd");
  });

  it("have facets for columns with few values", () => {
    const found = facets(rows, columns);
    expect(found.find((one) => one.column === "title")?.values[0]).toEqual(["fifo", 2]);
    expect(found.map((one) => one.column)).not.toContain("length"); // each run has its own
    expect(names(filtered(rows, columns, new Map([["title", "fifo"]])))).toBe("ad");
    expect(
      names(
        filtered(
          rows,
          columns,
          new Map([
            ["title", "fifo"],
            ["verdict", "valid"],
          ]),
        ),
      ),
    ).toBe("a");
    expect(names(filtered(rows, columns, new Map([["gone", "x"]])))).toBe("abcd");
  });
});

describe("the view in the address", () => {
  it("is the same after it was written and read", () => {
    const hash =
      "#token=T&run=a%26b.ktrxer&run=c%3Cscript%3E&plot=ping&arrange=one&shown=2&part=load&from=1.5&to=2" +
      "&bounds-y=0,50&series=a&series=UDP*" +
      "&search=x%3Dy&column=settings%2Fcc&sort=-added&facet=title%3Da%3Db&tab=compare&by=cc&a=x&b=y&all=yes";
    const state = read(hash);
    expect(state.runs).toEqual(["a&b.ktrxer", "c<script>"]);
    expect(state.range).toEqual([1.5, 2]);
    expect(state.facets.get("title")).toBe("a=b");
    expect([...state.settings]).toEqual([
      ["part", ["load"]],
      ["bounds-y", ["0,50"]],
      ["series", ["a", "UDP*"]],
    ]);
    expect(read(write(state))).toEqual(state);
  });

  it("has usual values for what is missing or wrong", () => {
    const state = read("#from=x&to=2&shown=-4&tab=nonsense&run=a&run=a");
    expect([state.range, state.shown, state.tab, state.runs, state.token]).toEqual([null, 0, "picture", ["a"], ""]);
    expect(write(read(""))).toBe("#");
  });
});

describe("an answer of the server", () => {
  const packed = (head: object, columns: Uint8Array): ArrayBuffer => {
    const text = new TextEncoder().encode(JSON.stringify(head));
    const made = new Uint8Array(4 + text.length + columns.length);
    new DataView(made.buffer).setUint32(0, text.length, true);
    made.set(text, 4);
    made.set(columns, 4 + text.length);
    return made.buffer;
  };

  it("has its columns behind the JSON, at any alignment", () => {
    const columns = new Uint8Array(12);
    const view = new DataView(columns.buffer);
    view.setInt32(0, 5, true);
    view.setInt32(4, -2147483648, true);
    view.setFloat32(8, 1.5, true);
    const arrays = [
      { type: "i32", count: 2, base: 10, scale: 0.5, at: 0 },
      { type: "f32", count: 1, base: 0, scale: 1, at: 8 },
    ];
    for (const title of ["", "x", "xy", "xyz"]) {
      const found = unpack(packed({ title, arrays }, columns));
      expect([...found.columns.get(0)]).toEqual([12.5, NaN]);
      expect([...found.columns.get(1)]).toEqual([1.5]);
    }
  });

  it("is refused where it is truncated", () => {
    const whole = packed({ arrays: [{ type: "f64", count: 2, base: 0, scale: 1, at: 0 }] }, new Uint8Array(16));
    expect(() => unpack(whole)).not.toThrow();
    for (const end of [0, 3, 10, whole.byteLength - 1]) expect(() => unpack(whole.slice(0, end))).toThrow();
    expect(() =>
      unpack(packed({ arrays: [{ type: "f64", count: 1e12, base: 0, scale: 1, at: 0 }] }, columns8())),
    ).toThrow(DataError);
  });
});

function columns8(): Uint8Array {
  return new Uint8Array(8);
}
