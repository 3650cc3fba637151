// SPDX-License-Identifier: MIT OR Apache-2.0
// The samples of one series, which has its own times: samples in a range, the sample nearest to the cursor.
// A sample with the value NaN is a gap: no line crosses it, and the cursor does not read it.

export interface Samples {
  x: Float64Array;
  y: Float64Array;
  /** The index of each sample in the original columns, if the samples had to be sorted; null: the order is the same. */
  order: Uint32Array | null;
}

function ordered(x: Float64Array): boolean {
  for (let i = 0; i < x.length; i++) {
    if (!Number.isFinite(x[i]) || (i > 0 && (x[i] as number) < (x[i - 1] as number))) return false;
  }
  return true;
}

export function pick(values: Float64Array, order: Uint32Array | null): Float64Array {
  return order ? Float64Array.from(order, (i) => values[i] as number) : values;
}

/** Sort by x and drop samples that the x axis cannot show; a value that the y axis cannot show becomes a gap. */
export function tidy(x: Float64Array, y: Float64Array, log: boolean, logX = false): Samples {
  let order: Uint32Array | null = null;
  const count = Math.min(x.length, y.length);
  if (!ordered(x) || x.length !== y.length || (logX && !((x[0] ?? 1) > 0))) {
    const kept: number[] = [];
    for (let i = 0; i < count; i++) if (Number.isFinite(x[i]) && (!logX || (x[i] as number) > 0)) kept.push(i);
    kept.sort((a, b) => (x[a] as number) - (x[b] as number) || a - b);
    order = Uint32Array.from(kept);
  }
  const values = Float64Array.from(pick(y, order), (value) =>
    Number.isFinite(value) && (!log || value > 0) ? value : NaN,
  );
  return { x: pick(x, order), y: values, order };
}

/** The first index whose x is not below `wanted`. */
export function lower(x: ArrayLike<number>, wanted: number): number {
  let from = 0;
  let to = x.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((x[middle] as number) < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The first index whose x is above `wanted`. */
export function upper(x: ArrayLike<number>, wanted: number): number {
  let from = 0;
  let to = x.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((x[middle] as number) <= wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The sample at a cursor at `wanted`: the nearest within `reach`; of steps the latest that has begun. null: none. */
export function nearest(samples: Samples, wanted: number, step: boolean, reach: number): number | null {
  const { x, y } = samples;
  const right = lower(x, wanted);
  let found: number;
  if (step) {
    found = upper(x, wanted) - 1;
    // The last sample of a step only ends it.
    if (found === x.length - 1 && wanted > (x[found] ?? -Infinity)) return null;
  } else {
    const before = right > 0 ? wanted - (x[right - 1] as number) : Infinity;
    const after = right < x.length ? (x[right] as number) - wanted : Infinity;
    if (Math.min(before, after) > reach) return null;
    found = after <= before ? right : right - 1;
  }
  return found >= 0 && Number.isFinite(y[found]) ? found : null;
}

/** The minimum and the maximum of the samples between two values of x. */
export function extent(samples: Samples, from: number, to: number): [number, number] | null {
  const { x, y } = samples;
  let low = Infinity;
  let high = -Infinity;
  const last = Math.min(x.length, upper(x, to));
  for (let i = lower(x, from); i < last; i++) {
    const value = y[i] as number;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}
