// SPDX-License-Identifier: MIT OR Apache-2.0
// The values in which the metadata of runs differ. Pure, for its tests.

import type { Json } from "../data";

const DEEPEST = 64;
const LONGEST = 300;

/** Each value that is no object, with its path, as `ktrxer runs --columns` has it. */
export function leaves(value: Json, path = "", depth = DEEPEST): [string, Json][] {
  if (typeof value !== "object" || value === null || Array.isArray(value) || depth === 0) return [[path, value]];
  return Object.entries(value).flatMap(([name, one]) => leaves(one, path ? `${path}/${name}` : name, depth - 1));
}

function shown(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, LONGEST);
}

/** A row for each path: the path, then the value of each run. */
export function differences(runs: readonly Json[]): string[][] {
  const flat = runs.map((one) => new Map(leaves(one)));
  const paths = [...new Set(flat.flatMap((one) => [...one.keys()]))];
  return paths
    .map((path) => [path, ...flat.map((one) => shown(one.get(path)))])
    .filter(([, ...values]) => new Set(values).size > 1);
}
