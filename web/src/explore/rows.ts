// SPDX-License-Identifier: MIT OR Apache-2.0
// The rows of the table: search, facets and order. Pure, for its tests.

export type Cell = string | number | null;

export interface Row {
  name: string;
  state: string;
  cells: Cell[];
}

export interface Facet {
  column: string;
  /** Each value with its number of rows. */
  values: [string, number][];
}

const MOST_VALUES = 8;
/** In a text with one of these, the search is a condition, which the server evaluates. */
const CONDITION = /[=<>~]/;

export function isCondition(search: string): boolean {
  return CONDITION.test(search);
}

export function shown(cell: Cell): string {
  if (cell === null) return "";
  return typeof cell === "number" ? String(Number(cell.toPrecision(6))) : cell;
}

/** The rows in which each word of the search is in some column. */
export function searched(rows: readonly Row[], search: string): Row[] {
  const words = isCondition(search) ? [] : search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...rows];
  return rows.filter((row) => {
    const text = [row.name, row.state, ...row.cells.map(shown)].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export function filtered(rows: readonly Row[], columns: readonly string[], facets: ReadonlyMap<string, string>): Row[] {
  const wanted = [...facets].map(([key, value]) => [columns.indexOf(key), value] as const).filter(([at]) => at >= 0);
  return rows.filter((row) => wanted.every(([at, value]) => shown(row.cells[at] ?? null) === value));
}

/** Columns with few values, each of which more than one row has. A file's name and a time are no facets. */
export function facets(rows: readonly Row[], columns: readonly string[]): Facet[] {
  const made: Facet[] = [];
  columns.forEach((column, at) => {
    if (column === "file" || column === "when" || column === "id") return;
    const counts = new Map<string, number>();
    for (const row of rows) {
      const value = shown(row.cells[at] ?? null);
      counts.set(value, (counts.get(value) ?? 0) + 1);
      if (counts.size > MOST_VALUES) return;
    }
    if (counts.size > 1 && counts.size < rows.length)
      made.push({ column, values: [...counts].sort((a, b) => b[1] - a[1]) });
  });
  return made;
}

const QUANTITY = /^[-+]?\d*\.?\d+(?:e[-+]?\d+)?(?= ?[a-z/%]*$)/i;

function key(cell: Cell): [number, number, string] {
  if (cell === null || cell === "") return [2, 0, ""];
  if (typeof cell === "number") return [0, cell, ""];
  const found = QUANTITY.exec(cell);
  return found ? [0, Number(found[0]), cell] : [1, 0, cell];
}

/** By a column; with `-` before its name downwards. Numbers by their value, before text; rows without a value last. */
export function sorted(rows: readonly Row[], columns: readonly string[], sort: string): Row[] {
  const down = sort.startsWith("-");
  const at = columns.indexOf(down ? sort.slice(1) : sort);
  if (at < 0) return [...rows];
  const keyed = rows.map((row, i) => ({ row, i, key: key(row.cells[at] ?? null) }));
  keyed.sort((a, b) => {
    if (a.key[0] !== b.key[0] && (a.key[0] === 2 || b.key[0] === 2)) return a.key[0] - b.key[0];
    const order =
      a.key[0] - b.key[0] || a.key[1] - b.key[1] || (a.key[2] < b.key[2] ? -1 : a.key[2] > b.key[2] ? 1 : 0);
    return (down ? -order : order) || a.i - b.i;
  });
  return keyed.map((one) => one.row);
}
