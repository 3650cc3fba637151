// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import type { Json } from "../src/data";
import { differences } from "../src/explore/differences";
import { Site } from "../src/explore/site";

function packed(head: object, columns: Uint8Array): string {
  const text = new TextEncoder().encode(JSON.stringify(head));
  const made = new Uint8Array(4 + text.length + columns.length);
  new DataView(made.buffer).setUint32(0, text.length, true);
  made.set(text, 4);
  made.set(columns, 4 + text.length);
  return btoa(String.fromCharCode(...made));
}

const arrays = [{ type: "f32", count: 1, base: 0, scale: 1, at: 0 }];
const plots = { ping: { title: "Ping", subtitle: "", columns: 1, panels: [], command: "ktrxer plot a.ktrxer" } };
const blocks: Record<string, string> = {
  "run-0": packed({ plots, first: "ping", problems: ["one"], arrays }, new Uint8Array([0, 0, 192, 63])),
  "run-1": "AAAA",
};
const stored = [
  { name: "a.ktrxer", element: "run-0", metadata: { label: "a" }, problem: "" },
  { name: "b.ktrxer", element: "run-1", metadata: { label: "b" }, problem: "" },
  { name: "c.ktrxer", element: "run-2", metadata: null, problem: "c cannot be read" },
];
const table = { version: "1", columns: ["title"], rows: [], note: "" };
const data = { view: "plot=ping", about: { generator: "g" }, table, stored };
const site = (): Site => new Site(data, (id) => blocks[id] ?? "");

describe("an exported page", () => {
  it("answers as the server does", async () => {
    const one = site();
    expect(one.view).toBe("plot=ping");
    expect(await one.json("about")).toEqual({ generator: "g" });
    expect(await one.json("runs", { columns: ["title"], where: "" })).toEqual(table);
    expect(await one.json("metadata", { runs: ["a.ktrxer", "c.ktrxer"] })).toEqual({
      runs: [{ label: "a" }],
      problems: ["c cannot be read"],
    });
    for (const plot of ["", "ping"]) {
      const found = await one.binary("picture", { runs: ["b.ktrxer", "a.ktrxer"], shown: 1, plot });
      expect([found.data.title, found.data.problems, found.arrays]).toEqual(["Ping", ["one"], 1]);
      expect([...found.columns.get(0)]).toEqual([1.5]);
    }
  });

  it("says what only the server can do", async () => {
    const one = site();
    await expect(one.json("runs", { columns: ["settings/cc"], where: "" })).rejects.toThrow("The column settings/cc");
    await expect(one.json("runs", { columns: [], where: "cc=bbr" })).rejects.toThrow("Search for words");
    await expect(one.json("groups", {})).rejects.toThrow("`ktrxer view`");
    await expect(one.file()).rejects.toThrow("`ktrxer view`");
    const nameless = one.binary("picture", { runs: ["a.ktrxer"], plot: "constructor" });
    await expect(nameless).rejects.toThrow("no samples for it");
    await expect(one.binary("picture", { runs: ["gone"], plot: "" })).rejects.toThrow("no such run");
    await expect(one.binary("picture", { runs: ["c.ktrxer"], plot: "" })).rejects.toThrow("c cannot be read");
    await expect(one.json("metadata", { runs: ["c.ktrxer"] })).rejects.toThrow("c cannot be read");
  });

  it("names a run whose columns are damaged", async () => {
    await expect(site().binary("picture", { runs: ["b.ktrxer"], plot: "" })).rejects.toThrow();
  });
});

describe("the values in which runs differ", () => {
  it("have a row for each path, with the value of each run", () => {
    const runs: Json[] = [
      { settings: { cc: "cubic", n: 1, list: [1, 2] }, same: { deep: true } },
      { settings: { cc: "bbr", n: 1, list: [1, 3] }, same: { deep: true }, more: null },
    ];
    expect(differences(runs)).toEqual([
      ["settings/cc", "cubic", "bbr"],
      ["settings/list", "[1,2]", "[1,3]"],
    ]);
    expect(differences([runs[0]!, runs[0]!])).toEqual([]);
  });

  it("are cut where they are long, and names of objects are names", () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": "x"}') as { [key: string]: string };
    const rows = differences([hostile, { long: "a".repeat(1000) }]);
    expect(rows.map(([path]) => path)).toEqual(["__proto__/polluted", "constructor", "long"]);
    expect(rows[2]?.[2]?.length).toBe(300);
    expect(({} as Record<string, unknown>).polluted).toBe(undefined);
  });
});
