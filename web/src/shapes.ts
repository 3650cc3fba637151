// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws what is no stroke along the samples: bars, intervals, closed curves, heat maps, and signs of events.

import type { Samples } from "./samples";
import type { View } from "./trace";

type Context = Pick<
  CanvasRenderingContext2D,
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "closePath"
  | "fill"
  | "stroke"
  | "rect"
  | "fillRect"
  | "globalAlpha"
  | "lineWidth"
>;

const HALF_BAR = 0.3; // of the distance of two places

/** Bars from zero; on a logarithmic axis, which has no zero, from the lower edge. */
export function bars(ctx: Context, samples: Samples, view: View, alpha: number): void {
  samples.x.forEach((at, i) => {
    const top = view.py(samples.y[i] as number);
    if (!Number.isFinite(top)) return;
    const zero = view.py(0);
    const base = Number.isFinite(zero) ? zero : 1e5;
    const [left, right] = [view.px(at - HALF_BAR), view.px(at + HALF_BAR)];
    ctx.beginPath();
    ctx.rect(left, Math.min(top, base), right - left, Math.abs(base - top));
    ctx.globalAlpha = alpha * 0.5;
    ctx.fill();
    ctx.globalAlpha = alpha;
    ctx.stroke();
  });
}

/** A line from low to high at each sample, with short ends. A missing end: no line. */
export function intervals(
  ctx: Context,
  x: Float64Array,
  low: Float64Array,
  high: Float64Array,
  view: View,
  half: number,
): void {
  ctx.beginPath();
  x.forEach((value, i) => {
    const [at, bottom, top] = [view.px(value), view.py(low[i] as number), view.py(high[i] as number)];
    if (!Number.isFinite(bottom) || !Number.isFinite(top)) return;
    ctx.moveTo(at, bottom);
    ctx.lineTo(at, top);
    for (const end of [bottom, top]) {
      ctx.moveTo(at - half, end);
      ctx.lineTo(at + half, end);
    }
  });
  ctx.stroke();
}

export function outline(ctx: Context, samples: Samples, view: View, alpha: number): void {
  ctx.beginPath();
  samples.x.forEach((at, i) => {
    const [x, y] = [view.px(at), view.py(samples.y[i] as number)];
    if (Number.isFinite(x) && Number.isFinite(y)) ctx.lineTo(x, y);
  });
  ctx.closePath();
  ctx.globalAlpha = alpha * 0.15;
  ctx.fill();
  ctx.globalAlpha = alpha;
  ctx.stroke();
}

/** x and y have the edges of the columns and rows. The opacity is the square root of a share, so small ones show. */
export function heat(ctx: Context, x: Float64Array, y: Float64Array, z: Float64Array, view: View, alpha: number): void {
  const columns = x.length - 1;
  let top = 0;
  for (const share of z) if (share > top) top = share;
  for (let row = 0; row < y.length - 1; row++) {
    const [from, to] = [view.py(y[row] as number), view.py(y[row + 1] as number)];
    for (let column = 0; column < columns; column++) {
      const share = z[row * columns + column] as number;
      if (!(share > 0)) continue;
      const left = Math.floor(view.px(x[column] as number));
      const right = Math.ceil(view.px(x[column + 1] as number));
      ctx.globalAlpha = alpha * Math.sqrt(share / top);
      ctx.fillRect(left, Math.min(from, to), right - left, Math.abs(to - from));
    }
  }
  ctx.globalAlpha = alpha;
}

// The strokes of each sign, in halves of its size.
const STROKES: Record<string, readonly (readonly [number, number, number, number])[]> = {
  lost: [
    [-1, -1, 1, 1],
    [-1, 1, 1, -1],
  ],
  drop: [
    [-1, -1, 0, 1],
    [0, 1, 1, -1],
  ],
  mark: [
    [-1, 1, 0, -1],
    [0, -1, 1, 1],
  ],
  retransmit: [
    [-1, 0, 1, 0],
    [0, -1, 0, 1],
  ],
};

/** A sign at each time in view; one for each column of pixels. */
export function sign(ctx: Context, kind: string, times: Float64Array, view: View, y: number, size: number): void {
  const strokes = STROKES[kind] ?? [];
  ctx.lineWidth = size * 0.5;
  ctx.beginPath();
  let last = NaN;
  for (const at of times) {
    if (!(at >= view.from && at <= view.to)) continue;
    const x = Math.round(view.px(at));
    if (x === last) continue;
    last = x;
    for (const [a, b, c, d] of strokes) {
      ctx.moveTo(x + a * size, y + b * size);
      ctx.lineTo(x + c * size, y + d * size);
    }
  }
  ctx.stroke();
}

/** The middles of the squares of a heat map, and their shares. */
export function squares({ x, y }: Samples, z: Float64Array, take: (x: number, y: number, share: number) => void): void {
  const middle = (edges: Float64Array, i: number): number => ((edges[i] as number) + (edges[i + 1] as number)) / 2;
  for (let row = 0; row < y.length - 1; row++)
    for (let column = 0; column < x.length - 1; column++)
      take(middle(x, column), middle(y, row), z[row * (x.length - 1) + column] as number);
}
