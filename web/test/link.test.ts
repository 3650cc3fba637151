// SPDX-License-Identifier: MIT OR Apache-2.0
import { describe, expect, it } from "vitest";
import { Link, Selection } from "../src/link";

function linked(): { link: Link; seen: [number, number][] } {
  const link = new Link();
  const seen: [number, number][] = [];
  link.cover(0, 60);
  link.cover(5, 70);
  link.join({
    showRange: (from, to) => seen.push([from, to]),
    showCursor: () => undefined,
    showSeries: () => undefined,
  });
  return { link, seen };
}

describe("a link", () => {
  it("covers the ranges of all panels", () => expect(linked().link.range).toEqual([0, 70]));

  it("shows every member the same range and reports zooming", () => {
    const { link, seen } = linked();
    link.show(10, 20);
    expect(seen).toEqual([[10, 20]]);
    expect(link.zoomed).toBe(true);
    link.reset();
    expect(seen[1]).toEqual([0, 70]);
    expect(link.zoomed).toBe(false);
  });

  it("stays inside the whole range when it is dragged", () => {
    const { link } = linked();
    link.show(30, 10);
    expect(link.range).toEqual([10, 30]);
    link.pan(-5);
    expect(link.range).toEqual([0, 20]);
    link.pan(50);
    expect(link.range).toEqual([50, 70]);
    link.zoom(100);
    expect(link.range).toEqual([0, 70]);
    link.show(-100, 1000);
    expect(link.zoomed).toBe(false);
  });

  it("zooms around the cursor, or around the middle if the cursor is outside", () => {
    const { link } = linked();
    link.zoom(0.5, 0);
    expect(link.range).toEqual([0, 35]);
    link.reset();
    link.zoom(0.5, 999);
    expect(link.range).toEqual([17.5, 52.5]);
  });

  it("limits the zoom, and ignores values that are not numbers", () => {
    const { link } = linked();
    for (let i = 0; i < 100; i++) link.zoom(0.1, 35);
    const [from, to] = link.range;
    expect(to - from).toBeGreaterThan(0.9 * 70e-6);
    link.reset();
    link.show(NaN, 5);
    expect(link.range).toEqual([0, 70]);
  });

  it("shows the range between its bounds at first, and all of it after zooming out", () => {
    const { link } = linked();
    link.bound(10, null);
    link.bound(null, 80);
    expect(link.range).toEqual([10, 80]);
    expect(link.zoomed).toBe(false);
    link.zoom(2);
    expect([link.range, link.zoomed]).toEqual([[0, 80], true]);
    link.reset();
    expect([link.range, link.zoomed]).toEqual([[10, 80], false]);
  });

  it("has a range without data", () => {
    const link = new Link();
    expect(link.range).toEqual([0, 1]);
    link.zoom(0.5);
    link.cover(NaN, 3);
    expect(link.range).toEqual([0, 1]);
    link.cover(4, 4);
    expect(link.range).toEqual([3.5, 4.5]);
  });
});

describe("a selection", () => {
  it("hides, shows, isolates and restores", () => {
    const selection = new Selection();
    let told = 0;
    selection.onChange(() => told++);
    selection.toggle("a");
    expect([...selection.hidden]).toEqual(["a"]);
    selection.toggle("a");
    expect(selection.hidden.size).toBe(0);
    selection.only("a", ["a", "b", "c"]);
    expect([...selection.hidden]).toEqual(["b", "c"]);
    selection.only("a", ["a", "b", "c"]);
    expect(selection.hidden.size).toBe(0);
    selection.highlight("b");
    selection.highlight("b");
    expect(told).toBe(5);
  });
});
