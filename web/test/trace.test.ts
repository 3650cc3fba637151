// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { tidy } from "../src/samples";
import { band, box, line, points, step, type Sink, type View } from "../src/trace";

const f = (...values: number[]): Float64Array => Float64Array.from(values);

class Recorder implements Sink {
  readonly strokes: [string, number, number][] = [];
  moveTo(x: number, y: number): void {
    this.strokes.push(["M", x, y]);
  }
  lineTo(x: number, y: number): void {
    this.strokes.push(["L", x, y]);
  }
}

const plain: View = { from: 0, to: 100, px: (x) => x, py: (y) => y };

function drawn(how: typeof line, x: Float64Array, y: Float64Array, view: View = plain): [string, number, number][] {
  const recorder = new Recorder();
  how(tidy(x, y, false), view, recorder);
  return recorder.strokes;
}

describe("a line", () => {
  it("goes through its samples and breaks at gaps", () => {
    expect(drawn(line, f(0, 1, 2, 3, 4), f(5, 6, NaN, 7, 8))).toEqual([
      ["M", 0, 5],
      ["L", 1, 6],
      ["M", 3, 7],
      ["L", 4, 8],
    ]);
  });

  it("shows a single sample between gaps", () => {
    expect(drawn(line, f(0, 1, 2), f(NaN, 6, NaN))).toEqual([
      ["M", 1, 6],
      ["L", 2, 6],
    ]);
    expect(drawn(line, f(1), f(6))).toEqual([
      ["M", 1, 6],
      ["L", 2, 6],
    ]);
  });

  it("keeps the minimum and the maximum of each column of pixels", () => {
    const n = 10000;
    const x = Float64Array.from({ length: n }, (_, i) => (i * 10) / n);
    const y = Float64Array.from({ length: n }, (_, i) => Math.sin(i));
    y[3210] = 99;
    y[6543] = -99;
    const strokes = drawn(line, x, y);
    expect(strokes.length).toBeLessThanOrEqual(4 * 11);
    const values = strokes.map((stroke) => stroke[2]);
    expect(Math.max(...values)).toBe(99);
    expect(Math.min(...values)).toBe(-99);
    expect(strokes.find((stroke) => stroke[2] === 99)?.[1]).toBe(3);
  });

  it("draws the samples in view and one on each side", () => {
    const x = f(0, 10, 20, 30, 40, 50);
    expect(drawn(line, x, x, { ...plain, from: 18, to: 32 }).map((stroke) => stroke[1])).toEqual([10, 20, 30, 40]);
  });

  it("without samples draws nothing", () => expect(drawn(line, f(), f())).toEqual([]));
});

describe("steps", () => {
  it("last until the next sample; the last sample only ends them", () => {
    expect(drawn(step, f(0, 10, 20), f(1, 2, 2))).toEqual([
      ["M", 0, 1],
      ["L", 10, 1],
      ["L", 10, 2],
      ["L", 20, 2],
    ]);
  });

  it("leave a gap without a value", () => {
    expect(drawn(step, f(0, 10, 20, 30), f(1, NaN, 3, 3))).toEqual([
      ["M", 0, 1],
      ["L", 10, 1],
      ["M", 20, 3],
      ["L", 30, 3],
    ]);
  });
});

describe("points", () => {
  it("in the same square are drawn once, and none outside the view", () => {
    const marks: [number, number][] = [];
    points(tidy(f(-5, 1, 1.1, 50, 60), f(1, 1, 1, 7, NaN), false), plain, 2, (x, y) => marks.push([x, y]));
    expect(marks).toEqual([
      [1, 1],
      [50, 7],
    ]);
  });
});

describe("a band", () => {
  it("is closed, with one shape for each range without a gap", () => {
    const shapes: [number, number][][] = [];
    band(f(0, 10, 20, 30), f(1, 1, NaN, 4), f(2, 3, 9, 5), false, plain, (shape) => shapes.push(shape));
    expect(shapes).toEqual([
      [
        [0, 2],
        [10, 3],
        [10, 1],
        [0, 1],
      ],
      [
        [30, 5],
        [30, 4],
      ],
    ]);
  });
});

describe("a band of steps", () => {
  it("lasts until the next sample, and the last sample only ends it", () => {
    const shapes: [number, number][][] = [];
    band(f(0, 10, 20), f(1, 3, 3), f(2, 4, 4), true, plain, (shape) => shapes.push(shape));
    expect(shapes).toEqual([
      [
        [0, 2],
        [10, 2],
        [10, 4],
        [20, 4],
        [20, 3],
        [10, 3],
        [10, 1],
        [0, 1],
      ],
    ]);
  });
});

describe("a box", () => {
  it("has its ends, its quartiles and its median", () => {
    const strokes = drawn(box, f(1, 1, 1, 1, 1), f(1, 2, 3, 4, 9), { ...plain, px: (x) => x * 4 });
    expect(strokes).toContainEqual(["L", 5, 3]);
    expect(strokes.map((stroke) => stroke[2]).sort((a, b) => a - b)[0]).toBe(1);
    expect(strokes.filter((stroke) => stroke[0] === "M").length).toBe(4);
  });

  it("with missing values is not drawn", () => {
    expect(drawn(box, f(1, 1), f(1, 2))).toEqual([]);
    expect(drawn(box, f(1, 1, 1, 1, 1), f(1, 2, NaN, 4, 5))).toEqual([]);
  });
});
