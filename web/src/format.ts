// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers as text for people. Each figure has its unit.

const MINUS = "\u2212";

/** Three to four significant digits; an exponent only for very small or large numbers: 0.0042, 1.23, 45.6, 1,234. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
  const size = Math.abs(value);
  let text: string;
  if (size === 0) text = "0";
  else if (size >= 1e9 || size < 1e-4) text = size.toExponential(2);
  else if (size >= 1000) text = Math.round(size).toLocaleString("en-US");
  else if (size >= 100) text = size.toFixed(1);
  else if (size >= 10) text = size.toFixed(2);
  else if (size >= 0.1) text = size.toFixed(3);
  else text = size.toPrecision(3);
  return value < 0 ? MINUS + text : text;
}

export function quantity(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
  return unit ? `${number(value)}\u00a0${unit}` : number(value);
}

/** Tick labels of one axis, all with as many decimals as the distance between ticks requires. */
export function ticks(values: readonly (number | null)[], step: number): (string | null)[] {
  let decimals = 0;
  if (step > 0 && Number.isFinite(step)) {
    const whole = (places: number): boolean =>
      Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) < 1e-6 && step * 10 ** places > 0.5;
    while (decimals < 9 && !whole(decimals)) decimals++;
  }
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-6)) return value.toExponential(0).replace("-", MINUS);
    const text = size.toLocaleString("en-US", {
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
      useGrouping: size >= 10000,
    });
    return value < 0 ? MINUS + text : text;
  });
}
/** Label decades, and also 2 and 5 if there are at most two decades. */
export function logTicks(values: readonly (number | null)[]): (string | null)[] {
  const known = values.filter((value) => value !== null);
  const decades = Math.log10((known[known.length - 1] ?? 1) / (known[0] ?? 1));
  const digits = decades <= 2 ? [1, 2, 5] : [1];
  return values.map((value) => {
    if (value === null) return null;
    const first = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    if (!digits.some((digit) => Math.abs(first - digit) < 1e-6)) return null;
    return value >= 1e5 || value < 1e-4
      ? value.toExponential(0)
      : value.toLocaleString("en-US", { maximumSignificantDigits: 2 });
  });
}
