// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { stripHeight, stripRow } from "../src/strip";

describe("the strip of lost probes", () => {
  it("has no height without lost probes", () => {
    expect(stripHeight(0)).toBe(0);
  });

  it.each([1, 2, 5, 6, 7, 24])("holds %i rows above the plot, and none covers another", (rows) => {
    let below = stripHeight(rows);
    for (let row = 0; row < rows; row++) {
      const { above, size } = stripRow(row, rows);
      expect(above + size).toBeLessThanOrEqual(below + 1e-9);
      below = above - size;
    }
    expect(below).toBeGreaterThan(0);
    expect(stripHeight(rows)).toBeLessThan(60);
  });
});
