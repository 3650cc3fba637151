// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { extent, lower, nearest, tidy, upper } from "../src/samples";

const f = (...values: number[]): Float64Array => Float64Array.from(values);

describe("samples", () => {
  it("in order are not changed", () => {
    const x = f(0, 1, 1, 2);
    const samples = tidy(x, f(5, 6, 7, 8), false);
    expect(samples.x).toBe(x);
    expect([...samples.y]).toEqual([5, 6, 7, 8]);
    expect(samples.order).toBe(null);
  });

  it("out of order are sorted, those without a time are dropped, and `order` has their indices", () => {
    const samples = tidy(f(2, NaN, 1, 1, Infinity), f(20, 9, 10, 11, 9), false);
    expect([...samples.x]).toEqual([1, 1, 2]);
    expect([...samples.y]).toEqual([10, 11, 20]);
    expect([...(samples.order ?? [])]).toEqual([2, 3, 0]);
  });

  it("without a value are gaps, and so is zero on a logarithmic axis", () => {
    expect([...tidy(f(0, 1, 2), f(1, Infinity, NaN), false).y]).toEqual([1, NaN, NaN]);
    expect([...tidy(f(0, 1, 2), f(0, -1, 3), true).y]).toEqual([NaN, NaN, 3]);
  });

  it("of columns of different lengths end with the shorter one", () => {
    expect([...tidy(f(0, 1, 2), f(1, 2), false).x]).toEqual([0, 1]);
    expect([...tidy(f(), f(1, 2), false).x]).toEqual([]);
  });
});

describe("the cursor", () => {
  const samples = tidy(f(0, 1, 2, 3, 4), f(10, NaN, 12, 13, 14), false);

  it("finds positions by binary search", () => {
    const x = [0, 1, 1, 4];
    expect([-1, 0, 0.5, 1, 4, 5].map((at) => lower(x, at))).toEqual([0, 0, 1, 1, 3, 4]);
    expect([-1, 0, 0.5, 1, 4, 5].map((at) => upper(x, at))).toEqual([0, 1, 1, 3, 4, 4]);
  });

  it("reads the nearest sample", () => {
    expect([-0.4, 0.4, 1.6, 2.4, 9].map((at) => nearest(samples, at, false, 9))).toEqual([0, 0, 2, 2, 4]);
  });

  it("reads nothing in a gap, too far away, or from nothing", () => {
    expect(nearest(samples, 1, false, 9)).toBe(null);
    expect(nearest(samples, 6, false, 1)).toBe(null);
    expect(nearest(tidy(f(), f(), false), 1, false, 9)).toBe(null);
    expect(nearest(tidy(f(), f(), false), 1, true, 9)).toBe(null);
  });

  it("reads the current step, and none after the last", () => {
    expect([-1, 0, 0.9, 1.5, 2.9, 3].map((at) => nearest(samples, at, true, 0))).toEqual([null, 0, 0, null, 2, 3]);
    expect(nearest(samples, 4.1, true, 0)).toBe(null);
  });
});

describe("the range of y", () => {
  it("contains only the samples between the ends", () => {
    const samples = tidy(f(0, 1, 2, 3), f(100, 2, NaN, -50), false);
    expect(extent(samples, 1, 2)).toEqual([2, 2]);
    expect(extent(samples, 0, 3)).toEqual([-50, 100]);
    expect(extent(samples, 1.5, 2.5)).toBe(null);
    expect(extent(tidy(f(), f(), false), 0, 1)).toBe(null);
  });
});
