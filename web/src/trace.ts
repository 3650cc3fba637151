// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws samples as strokes. If many samples fall on one column of pixels, the stroke goes through the first, the
// minimum, the maximum and the last of them. The result looks like a stroke through all samples, at the cost of four.

import { lower, upper, type Samples } from "./samples";

export interface Sink {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

export interface View {
  from: number; // of x, in the axis' unit
  to: number;
  px(x: number): number; // to pixels
  py(y: number): number;
}

/** The indices to draw: the samples in view, and one neighbour on each side, so that lines reach the edge. */
function window(samples: Samples, view: View): [number, number] {
  return [Math.max(0, lower(samples.x, view.from) - 1), Math.min(samples.x.length, upper(samples.x, view.to) + 1)];
}

export function line(samples: Samples, view: View, sink: Sink): void {
  const { x, y } = samples;
  const [begin, end] = window(samples, view);
  let pen = false; // whether the next sample continues the line
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  let lowFirst = true;
  let many = false;
  const flush = (): void => {
    if (!many) return;
    sink.lineTo(column, lowFirst ? low : high);
    sink.lineTo(column, lowFirst ? high : low);
    sink.lineTo(column, last);
    many = false;
  };
  for (let i = begin; i < end; i++) {
    const value = y[i] as number;
    if (Number.isNaN(value)) {
      flush();
      pen = false;
      column = NaN;
      continue;
    }
    const at = Math.round(view.px(x[i] as number));
    const to = view.py(value);
    if (pen && at === column) {
      if (to < low) {
        low = to;
        lowFirst = false;
      }
      if (to > high) {
        high = to;
        lowFirst = true;
      }
      last = to;
      many = true;
      continue;
    }
    flush();
    if (pen) sink.lineTo(at, to);
    else {
      sink.moveTo(at, to);
      // Draw a single sample between two gaps as a dot.
      const next = y[i + 1];
      if (next === undefined || Number.isNaN(next)) sink.lineTo(at + 1, to);
    }
    pen = true;
    column = at;
    low = high = last = to;
  }
  flush();
}

/** The value y[i] lasts from x[i] to x[i + 1]; the last sample only ends the step before it. */
export function step(samples: Samples, view: View, sink: Sink): void {
  const { x, y } = samples;
  const [begin, end] = window(samples, view);
  let pen = false;
  for (let i = begin; i < end - 1; i++) {
    const value = y[i] as number;
    if (Number.isNaN(value)) {
      pen = false;
      continue;
    }
    const to = view.py(value);
    if (pen) sink.lineTo(view.px(x[i] as number), to);
    else sink.moveTo(view.px(x[i] as number), to);
    sink.lineTo(view.px(x[i + 1] as number), to);
    pen = true;
  }
}

/** One mark for each square of `size` pixels that contains a sample. */
export function points(samples: Samples, view: View, size: number, mark: (x: number, y: number) => void): void {
  const { x, y } = samples;
  const [begin, end] = window(samples, view);
  const seen = new Set<number>();
  for (let i = begin; i < end; i++) {
    const value = y[i] as number;
    const at = x[i] as number;
    if (Number.isNaN(value) || at < view.from || at > view.to) continue;
    const cellX = Math.round(view.px(at) / size);
    const cellY = Math.round(view.py(value) / size);
    const cell = cellX * 65536 + (cellY & 65535);
    if (seen.has(cell)) continue;
    seen.add(cell);
    mark(view.px(at), view.py(value));
  }
}

/** Five samples at one x: the ends of the line, the ends of the box, and the median. */
export function box(samples: Samples, view: View, sink: Sink, half = 0.25): void {
  const { x, y } = samples;
  if (y.length !== 5 || y.some((value) => Number.isNaN(value))) return;
  const [low, from, median, to, high] = Array.from(y, (value) => view.py(value)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const at = x[0] as number;
  const centre = view.px(at);
  const [left, right] = [view.px(at - half), view.px(at + half)];
  const stroke = (...points: [number, number][]): void =>
    points.forEach(([px, py], i) => (i === 0 ? sink.moveTo(px, py) : sink.lineTo(px, py)));
  stroke([centre, low], [centre, from]);
  stroke([centre, to], [centre, high]);
  stroke([left, from], [right, from], [right, to], [left, to], [left, from]);
  stroke([left, median], [right, median]);
}

/**
 * The area between two values of each sample, as closed shapes: one for each range without a gap. With `steps` each
 * pair of values lasts until the next sample.
 */
export function band(
  x: Float64Array,
  low: Float64Array,
  high: Float64Array,
  steps: boolean,
  view: View,
  shape: (points: [number, number][]) => void,
): void {
  const begin = Math.max(0, lower(x, view.from) - 1);
  const end = Math.min(x.length, low.length, high.length, upper(x, view.to) + 1);
  let top: [number, number][] = [];
  let bottom: [number, number][] = [];
  const flush = (): void => {
    if (top.length > 0) shape([...top, ...bottom.reverse()]);
    top = [];
    bottom = [];
  };
  for (let i = begin; i < end; i++) {
    if (!Number.isFinite(low[i]) || !Number.isFinite(high[i])) {
      flush();
      continue;
    }
    const at = Math.round(view.px(x[i] as number));
    const up = view.py(high[i] as number);
    const down = view.py(low[i] as number);
    const previous = top.length - 1;
    if (steps) {
      if (i + 1 < end) {
        const until = Math.round(view.px(x[i + 1] as number));
        top.push([at, up], [until, up]);
        bottom.push([at, down], [until, down]);
      }
      continue;
    }
    if (previous >= 0 && (top[previous] as [number, number])[0] === at) {
      // One column of pixels: keep the widest bounds. Pixels count downwards.
      (top[previous] as [number, number])[1] = Math.min((top[previous] as [number, number])[1], up);
      (bottom[previous] as [number, number])[1] = Math.max((bottom[previous] as [number, number])[1], down);
      continue;
    }
    top.push([at, up]);
    bottom.push([at, down]);
  }
  flush();
}
