// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { laneHeight, laneRow } from "../src/lane";

describe("the lane of lost probes", () => {
  it("has no height without lost probes", () => {
    expect(laneHeight(0)).toBe(0);
  });

  it.each([1, 2, 5, 6, 7, 24])("holds %i rows above the plot, and none covers another", (rows) => {
    let below = laneHeight(rows);
    for (let row = 0; row < rows; row++) {
      const { above, size } = laneRow(row, rows);
      expect(above + size).toBeLessThanOrEqual(below + 1e-9);
      below = above - size;
    }
    expect(below).toBeGreaterThan(0);
    expect(laneHeight(rows)).toBeLessThan(60);
  });
});
