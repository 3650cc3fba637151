// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { bars, heat, intervals, outline, sign } from "../src/shapes";
import type { View } from "../src/trace";

type Call = [string, ...number[]];

/** A canvas that keeps its calls. */
function canvas(): { calls: Call[]; alphas: number[] } & Parameters<typeof bars>[0] {
  const calls: Call[] = [];
  const alphas: number[] = [];
  const keep =
    (name: string) =>
    (...numbers: number[]): void => {
      calls.push([name, ...numbers]);
      if (name === "fillRect") alphas.push(made.globalAlpha);
    };
  const names = ["beginPath", "moveTo", "lineTo", "closePath", "fill", "stroke", "rect", "fillRect"] as const;
  const made = {
    calls,
    alphas,
    globalAlpha: 1,
    lineWidth: 1,
    ...(Object.fromEntries(names.map((name) => [name, keep(name)])) as Record<(typeof names)[number], () => void>),
  };
  return made;
}

const view: View = { from: 0, to: 10, px: (x) => 100 * x, py: (y) => 50 - y };
const samples = (x: number[], y: number[]) => ({ x: Float64Array.from(x), y: Float64Array.from(y), order: null });

describe("shapes", () => {
  it("bars reach from zero, also downwards; a missing value has none", () => {
    const to = canvas();
    bars(to, samples([1, 2, 3], [20, -10, NaN]), view, 1);
    expect(to.calls.filter(([name]) => name === "rect").map(([, ...of]) => of.map(Math.round))).toEqual([
      [70, 30, 60, 20],
      [170, 50, 60, 10],
    ]);
  });

  it("intervals have both ends, or are not drawn", () => {
    const to = canvas();
    intervals(to, Float64Array.of(1, 2), Float64Array.of(5, NaN), Float64Array.of(8, 9), view, 3);
    expect(to.calls.filter(([name]) => name === "lineTo")).toEqual([
      ["lineTo", 100, 42],
      ["lineTo", 103, 45],
      ["lineTo", 103, 42],
    ]);
  });

  it("an outline keeps the order of its points", () => {
    const to = canvas();
    outline(to, samples([2, 1, 3], [1, 2, 3]), view, 1);
    expect(to.calls.filter(([name]) => name === "lineTo").map(([, x]) => x)).toEqual([200, 100, 300]);
  });

  it("a heat map draws the shares row by row, and leaves the empty ones out", () => {
    const to = canvas();
    heat(to, Float64Array.of(0, 1, 2), Float64Array.of(0, 10, 20), Float64Array.of(1, 0, NaN, 0.25), view, 1);
    expect(to.calls).toEqual([
      ["fillRect", 0, 40, 100, 10],
      ["fillRect", 100, 30, 100, 10],
    ]);
    expect(to.alphas).toEqual([1, 0.5]);
  });

  it("events on one pixel are one sign", () => {
    const to = canvas();
    sign(to, "retransmit", Float64Array.of(1, 1.001, 2, 11), view, 5, 2);
    expect(to.calls.filter(([name]) => name === "moveTo")).toHaveLength(4); // two signs of two strokes
  });
});
