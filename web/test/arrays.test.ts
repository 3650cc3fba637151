// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { Columns, PackedError, decode, type PackedArray } from "../src/arrays";

function pack(type: PackedArray["type"], raw: ArrayBufferView, count: number, base = 0, scale = 1): PackedArray {
  const data = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString("base64");
  return { type, count, base, scale, data };
}

describe("columns", () => {
  it("have the values that were packed", () => {
    expect([...decode(pack("f64", Float64Array.of(1.5, NaN, -2), 3))]).toEqual([1.5, NaN, -2]);
    expect([...decode(pack("f32", Float32Array.of(0.5, NaN), 2, 1, 2))]).toEqual([2, NaN]);
    expect([...decode(pack("i32", Int32Array.of(0, 1000, -2147483648), 3, 5, 1e-3))]).toEqual([5, 6, NaN]);
    const bytes = Uint8Array.of(7, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0x80, 1, 0, 0x80);
    expect([...decode(pack("i24", bytes, 4, 0, 10))]).toEqual([70, -10, NaN, -83886070]);
  });

  it("are refused if they are truncated, too long, or not base64", () => {
    const good = pack("i32", Int32Array.of(1, 2), 2);
    for (const bad of [
      { ...good, count: 3 },
      { ...good, count: 1 },
      { ...good, data: good.data.slice(0, -4) },
      { ...good, data: "@@@@" },
    ]) {
      expect(() => decode(bad)).toThrow(PackedError);
    }
  });

  it("are decoded once, and only those that exist", () => {
    const columns = new Columns([pack("i32", Int32Array.of(4), 1)]);
    expect(columns.get(0)).toBe(columns.get(0));
    expect(() => columns.get(1)).toThrow(PackedError);
  });
});
