// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { find } from "../src/tree";

describe("the search through metadata", () => {
  const metadata = {
    before: { sysctls: { "net.ipv4.tcp_congestion_control": "cubic" }, qdiscs: ["fq_codel", null] },
    after: 3,
  };
  it("matches names and values", () => {
    expect(find(metadata, "CUBIC", 9)).toEqual([["before.sysctls.net.ipv4.tcp_congestion_control", "cubic"]]);
    expect(find(metadata, "qdiscs", 9)).toEqual([
      ["before.qdiscs.0", "fq_codel"],
      ["before.qdiscs.1", "\u2013"],
    ]);
    expect(find(metadata, "nothing", 9)).toEqual([]);
  });
  it("stops at its limit", () => expect(find(metadata, "", 2).length).toBe(2));
});
