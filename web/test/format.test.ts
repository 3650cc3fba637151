// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { number, quantity, ticks } from "../src/format";

describe("numbers", () => {
  it.each([
    [0, "0"],
    [0.00421, "0.00421"],
    [0.5, "0.500"],
    [1.23456, "1.235"],
    [45.678, "45.68"],
    [345.67, "345.7"],
    [1234.5, "1,235"],
    [-12.5, "\u221212.50"],
    [5e-7, "5.00e-7"],
    [3e12, "3.00e+12"],
  ])("%d reads %s", (value, words) => expect(number(value)).toBe(words));

  it.each([[NaN], [Infinity], [null], [undefined]])("%s has no figure", (value) => {
    expect(number(value)).toBe("\u2013");
    expect(quantity(value, "ms")).toBe("\u2013");
  });

  it("carry their unit", () => expect(quantity(1.5, "ms")).toBe("1.500\u00a0ms"));
});

describe("tick labels", () => {
  it.each([
    [[0, 10, 20], 10, ["0", "10", "20"]],
    [[0, 0.5, 1], 0.5, ["0.0", "0.5", "1.0"]],
    [[0, 2.5, 5], 2.5, ["0.0", "2.5", "5.0"]],
    [[-20, 0], 20, ["\u221220", "0"]],
    [[0, 20000], 20000, ["0", "20,000"]],
    [[1e-9, 2e-9], 1e-9, ["1e\u22129", "2e\u22129"]],
    [[null, NaN], 1, [null, null]],
  ])("%j by %d", (values, step, words) => expect(ticks(values as (number | null)[], step)).toEqual(words));
});
