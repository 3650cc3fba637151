// SPDX-License-Identifier: MIT OR Apache-2.0
// Lost probes have no delay, so they have no place among the delays: a strip above the plot, with a row for each series.

const ROW = 8;
const MOST = 48; // of many rows together
const GAP = 6; // between the strip and the plot

/** In CSS pixels; 0 for no rows. */
export function stripHeight(rows: number): number {
  return rows > 0 ? Math.min(ROW * rows, MOST) + GAP : 0;
}

/** How far the middle of a row, the first one on top, lies above the upper edge of the plot, and half the size of its crosses. */
export function stripRow(row: number, rows: number): { above: number; size: number } {
  const pitch = Math.min(ROW, MOST / rows);
  return { above: GAP + pitch * (rows - row - 0.5), size: Math.min(2.5, pitch / 2) };
}
