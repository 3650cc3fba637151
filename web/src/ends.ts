// SPDX-License-Identifier: MIT OR Apache-2.0
// The ends of axes, and what stands beside them.

import uPlot from "uplot";
import type { Axis } from "./data";

/** A range with room for the samples at its ends. */
export function logEnds(low: number, high: number): [number, number] {
  const [a, b] = uPlot.rangeLog(low, high * 1.2, 10, false);
  return [a ?? low, b ?? high];
}

export function linearEnds(low: number, high: number, zero: boolean): [number, number] {
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  const room = low === high ? (Math.abs(low) || 1) / 2 : (high - low) * 0.06;
  return [zero && low >= 0 ? 0 : low - room, high + room];
}

/** Names that are too long for their places stand at an angle, and are cut to what fits below the plot. */
export function tiltOf(names: readonly string[], width: number): { height: number; letters: number } {
  const longest = Math.max(0, ...names.map((name) => name.length));
  if (longest * 7 < width / Math.max(1, names.length)) return { height: 0, letters: longest };
  const letters = Math.min(longest, 24);
  return { height: Math.ceil(letters * 4), letters };
}

export function short(name: string, letters: number): string {
  return name.length > letters ? `${name.slice(0, letters - 1)}\u2026` : name;
}

export function named(axis: Axis): string {
  return axis.unit ? `${axis.label} (${axis.unit})` : axis.label;
}

export function ends(values: Float64Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
