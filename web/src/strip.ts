// SPDX-License-Identifier: MIT OR Apache-2.0
// A strip above the plot shows lost probes, because they have no delay. It has a row for each series.

const ROW = 8;
const MOST = 48; // upper limit for all rows together
const GAP = 6; // between the strip and the plot

/** The height in CSS pixels; 0 for no rows. */
export function stripHeight(rows: number): number {
  return rows > 0 ? Math.min(ROW * rows, MOST) + GAP : 0;
}

/** Distance from the upper edge of the plot to the middle of a row (row 0 is on top); half the size of its crosses. */
export function stripRow(row: number, rows: number): { above: number; size: number } {
  const pitch = Math.min(ROW, MOST / rows);
  return { above: GAP + pitch * (rows - row - 0.5), size: Math.min(2.5, pitch / 2) };
}
