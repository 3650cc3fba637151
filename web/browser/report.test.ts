// SPDX-License-Identifier: MIT OR Apache-2.0
// The page in use: with pointer and keyboard, in print, on a small screen, without JavaScript.

import { mkdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { launch, open, panel, PICTURES, pixels, SAMPLES } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(async () => browser.close());

const BLUE = "#015fd5"; // the first colour of the light palette: class BE
const PINK = "#d75eb5"; // class EF
const BLUE_AT_NIGHT = "#326fc0";
const TIME_PANELS = ["throughput-down", "throughput-up", "latency", "oneway-up", "oneway-down", "lateness", "queue"];

async function picture(page: Page, name: string, whole = true): Promise<void> {
  if (!PICTURES) return;
  mkdirSync(PICTURES, { recursive: true });
  if (whole) {
    // Draw all plots first: each is drawn when it comes near the visible part.
    for (const figure of await page.locator("figure.panel:visible").all()) await figure.scrollIntoViewIfNeeded();
    await page.evaluate(() => scrollTo(0, 0));
  }
  await page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: whole });
}

async function range(page: Page, key: string): Promise<[number, number]> {
  const found = page.locator(`figure[data-panel="${key}"]`);
  return [Number(await found.getAttribute("data-from")), Number(await found.getAttribute("data-to"))];
}

describe("a report of an rrul", () => {
  it("is small, fast, and makes no network requests", async () => {
    expect(statSync(path.join(SAMPLES, "rrul.html")).size).toBeLessThan(3e6);
    const { page, problems, busy, close } = await open(browser, "rrul.html");
    await panel(page, "throughput-down");
    const used = await busy();
    const first = Math.min(
      ...(await page
        .locator("figure[data-drawn]")
        .evaluateAll((all) => all.map((one) => Number((one as HTMLElement).dataset.drawn)))),
    );
    console.log(
      `figure: first plot of a 70-second rrul after ${first} ms (goal 1000), processor ${used.toFixed(0)} ms, ` +
        `${statSync(path.join(SAMPLES, "rrul.html")).size} bytes (goal 3000000)`,
    );
    expect(used).toBeGreaterThan(1);
    expect(used).toBeLessThan(3000); // the goal with a margin for a slow machine
    expect(await page.title()).toBe("Home router, pfifo");
    for (const key of [...TIME_PANELS, "latency-cdf"]) await panel(page, key);
    expect(problems).toEqual([]);
    await picture(page, "desktop-light");
    await close();
  });

  it("answers first, and folds the panels without news", async () => {
    const { page, problems, close } = await open(browser, "rrul.html");
    const answer = page.locator(".answer .headline");
    expect(await answer.textContent()).toMatch(/^The upload queue adds \d+(\.\d+)? ms\.$/);
    expect((await answer.boundingBox())?.y).toBeLessThan(400);
    expect(await page.locator("section[id^=plots] figure.panel").first().getAttribute("data-panel")).toBe("latency");
    const folded = page.locator("details.folded");
    expect(await folded.count()).toBeGreaterThan(0);
    expect(await folded.first().locator("figure").isVisible()).toBe(false);
    // By keyboard: the summary opens the panel, and the plot is drawn.
    await folded.first().locator("summary").focus();
    await page.keyboard.press("Enter");
    await folded.first().locator("canvas").waitFor();
    expect(await folded.first().locator("figure").isVisible()).toBe(true);
    expect(problems).toEqual([]);
    await close();
  });

  it("has a logarithmic scale and saves its samples", async () => {
    const { page, problems, close } = await open(browser, "rrul.html");
    const figure = await panel(page, "latency");
    await figure.getByRole("button", { name: "Log scale" }).click();
    expect(await figure.getByRole("button", { name: "Log scale" }).getAttribute("aria-pressed")).toBe("true");
    expect(await pixels(page, "latency", BLUE)).toBeGreaterThan(100);
    const cdf = await panel(page, "latency-cdf");
    await cdf.getByRole("button", { name: "Log scale" }).click();
    expect(await pixels(page, "latency-cdf", PINK)).toBeGreaterThan(50);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      figure.getByRole("button", { name: /CSV/ }).click(),
    ]);
    const text = readFileSync((await download.path()) ?? "", "utf8").split("\n");
    expect(text[0]).toBe("panel,series,x,x unit,y,y unit,low,high,share");
    expect(text.length).toBeGreaterThan(27_000);
    expect(text[1]).toMatch(/^"Round-trip time","ICMP",[\d.e-]+,"s",[\d.]*,"ms",,,$/);
    expect(problems).toEqual([]);
    await close();
  });

  it("shows lost probes in a strip above the plot", async () => {
    const { page, problems, close } = await open(browser, "rrul.html");
    await panel(page, "latency");
    expect(await pixels(page, "latency", BLUE, "above")).toBeGreaterThan(20);
    await panel(page, "oneway-up");
    expect(await pixels(page, "oneway-up", BLUE, "above")).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it("fits a phone", async () => {
    const { page, problems, close } = await open(browser, "rrul.html", {
      viewport: { width: 390, height: 844 },
      deviceScaleFactor: 2,
      hasTouch: true,
      isMobile: true,
    });
    await panel(page, "latency");
    const widths = await page.evaluate(() => ({
      page: document.documentElement.scrollWidth,
      screen: innerWidth,
      buttons: [...document.querySelectorAll(".tools button, .legend button")].map(
        (node) => node.getBoundingClientRect().height,
      ),
    }));
    expect(widths.screen).toBe(390);
    expect(widths.page).toBeLessThanOrEqual(390);
    // No table is cut off: each row is a block of its own.
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>(".table, .table td")]
        .filter((one) => one.scrollWidth > one.clientWidth + 1)
        .map((one) => one.textContent?.slice(0, 80)),
    );
    expect(cut).toEqual([]);
    // Each link of the bar is visible and can be tapped without scrolling the bar.
    const bar = await page.locator(".top nav").evaluate((nav) => ({
      right: nav.getBoundingClientRect().right,
      scrolls: nav.scrollWidth > nav.clientWidth,
      links: [...nav.children].map((link) => [
        link.textContent,
        link.getBoundingClientRect().right,
        link.scrollWidth > link.clientWidth,
      ]),
    }));
    expect(bar.links.map(([words]) => words)).toEqual(["Summary", "Plots", "Repeat", "Metadata"]);
    expect(bar.scrolls).toBe(false);
    for (const [words, right, cut] of bar.links)
      expect([words, Number(right) <= bar.right - 19, cut]).toEqual([words, true, false]);
    expect(Math.min(...widths.buttons.filter((height) => height > 0))).toBeGreaterThanOrEqual(30);
    // One finger moves the cursor.
    const box = await page.locator('figure[data-panel="latency"] .u-over').boundingBox();
    if (!box) throw new Error("no plot");
    await page.touchscreen.tap(box.x + box.width / 2, box.y + 50);
    expect(await page.locator('figure[data-panel="latency"] .readout').textContent()).toMatch(/^Time /);
    expect(problems).toEqual([]);
    await picture(page, "phone-light");
    await close();
  });

  it("is dark if the system is dark, or if the reader chooses it", async () => {
    const { page, close } = await open(browser, "rrul.html", { colorScheme: "dark" });
    await panel(page, "latency");
    const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(await ground()).toBe("rgb(16, 19, 23)");
    expect(await pixels(page, "latency", BLUE_AT_NIGHT)).toBeGreaterThan(100);
    await picture(page, "desktop-dark");
    await page.getByRole("button", { name: "Colours: as the system" }).click();
    expect(await ground()).toBe("rgb(246, 247, 249)");
    expect(await pixels(page, "latency", BLUE_AT_NIGHT)).toBeLessThan(30); // pixels where other colours blend
    expect(await pixels(page, "latency", BLUE)).toBeGreaterThan(100);
    await page.getByRole("button", { name: "Colours: light" }).click();
    expect(await ground()).toBe("rgb(16, 19, 23)");
    await close();
  });

  it("prints all its plots, black on white", async () => {
    const { page, close } = await open(browser, "rrul.html", { colorScheme: "dark" });
    await page.evaluate(() => {
      addEventListener("beforeprint", () => {
        document.documentElement.dataset.theme === "light" || (document.title = "dark on paper");
      });
    });
    const paper = await page.pdf({ format: "A4", ...(PICTURES ? { path: path.join(PICTURES, "print.pdf") } : {}) });
    expect(paper.length).toBeGreaterThan(50_000);
    expect(await page.title()).toBe("Home router, pfifo");
    expect(await page.locator("figure.panel:not([data-drawn])").count()).toBe(0);
    await page.emulateMedia({ media: "print" });
    expect(await page.locator(".tools").first().isVisible()).toBe(false);
    await close();
  });

  it("shows text and figures without JavaScript", async () => {
    const { page, close } = await open(browser, "rrul.html", { javaScriptEnabled: false });
    const text = await page.locator("main").innerText();
    expect(text).toContain("Home router, pfifo");
    expect(text).toContain("Verdict: valid");
    expect(text).toContain("ktrxer run rrul -H far.example");
    expect(text).toContain("need JavaScript");
    await close();
  });
});

describe("a report in use", () => {
  // One page for all tests: each test restores its state.
  let page: Page;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ page, close } = await open(browser, "rrul.html"));
  });
  afterAll(async () => close());

  it("draws each series in its colour, hides it in all plots and shows it again", async () => {
    await panel(page, "latency");
    await panel(page, "oneway-up");
    expect(await pixels(page, "latency", BLUE)).toBeGreaterThan(100);
    const legend = page.locator('figure[data-panel="latency"] .legend button', { hasText: "UDP BE" });
    await legend.click();
    await page.mouse.move(0, 0);
    expect(await legend.getAttribute("aria-pressed")).toBe("false");
    expect(await pixels(page, "latency", BLUE)).toBe(0);
    expect(await pixels(page, "oneway-up", BLUE)).toBe(0);
    await page.waitForTimeout(400); // avoids a double click
    await legend.click();
    await page.mouse.move(0, 0);
    expect(await pixels(page, "latency", BLUE)).toBeGreaterThan(100);
  });

  it("shows only one series after a double click and all after the next", async () => {
    const figure = await panel(page, "latency");
    const buttons = figure.locator(".legend button");
    await page.waitForTimeout(400); // separates these clicks from a click of the previous test
    await buttons.nth(1).dblclick();
    const pressed = (): Promise<(string | null)[]> =>
      buttons.evaluateAll((all) => all.map((one) => one.getAttribute("aria-pressed")));
    expect((await pressed()).filter((state) => state === "true").length).toBe(1);
    expect((await pressed())[1]).toBe("true");
    await page.waitForTimeout(400);
    await buttons.nth(1).dblclick();
    expect((await pressed()).every((state) => state === "true")).toBe(true);
  });

  it("highlights the series under the pointer or with the focus", async () => {
    const figure = await panel(page, "latency");
    await page.mouse.move(0, 0);
    const before = await pixels(page, "latency", BLUE);
    await figure.locator(".legend button", { hasText: "EF" }).hover();
    expect(await pixels(page, "latency", BLUE)).toBeLessThan(before / 4);
    await page.mouse.move(0, 0);
    expect(await pixels(page, "latency", BLUE)).toBe(before);
  });

  it("zooms all plots over time by dragging, and resets them by a double click", async () => {
    await panel(page, "latency");
    const over = (await panel(page, "throughput-down")).locator(".u-over");
    const box = await over.boundingBox();
    if (!box) throw new Error("no plot");
    await page.mouse.move(box.x + box.width * 0.25, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 90, { steps: 4 });
    await page.mouse.up();
    const [from, to] = await range(page, "throughput-down");
    expect(from).toBeGreaterThan(15);
    expect(from).toBeLessThan(20);
    expect(to).toBeGreaterThan(33);
    expect(to).toBeLessThan(37);
    for (const key of TIME_PANELS) expect(await range(page, key)).toEqual([from, to]);
    await picture(page, "zoomed", false);
    await page.mouse.dblclick(box.x + box.width / 2, box.y + 60);
    const [begin, end] = await range(page, "latency");
    expect(end - begin).toBeGreaterThan(69);
  });

  it("reads all plots at one cursor, with the values of the samples", async () => {
    const other = await panel(page, "latency");
    const over = (await panel(page, "throughput-down")).locator(".u-over");
    const box = await over.boundingBox();
    if (!box) throw new Error("no plot");
    await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
    const words = await page.locator('figure[data-panel="throughput-down"] .readout').textContent();
    expect(words).toMatch(/^Time 3[45]\.\d+\u00a0s$/);
    expect(await other.locator(".readout").textContent()).toBe(words);
    const shown = await other.locator(".legend .value").allTextContents();
    expect(shown.length).toBe(4);
    for (const value of shown) expect(value).toMatch(/^([\d.]+\u00a0ms|\u2013)$/);
    // The expected value, from the data of the page itself.
    const truth = await page.evaluate(
      (at) => {
        const data = JSON.parse(document.getElementById("report")?.textContent ?? "");
        const one = data.runs[0].panels.find((item: { key: string }) => item.key === "latency").series[0];
        const bytes = (index: number): DataView =>
          new DataView(Uint8Array.from(atob(data.arrays[index].data), (c) => c.charCodeAt(0)).buffer);
        const [x, y, column] = [bytes(one.x), bytes(one.y), data.arrays[one.x]];
        let best = 0;
        let distance = Infinity;
        for (let i = 0; i < column.count; i++) {
          const away = Math.abs(column.base + column.scale * x.getInt32(4 * i, true) - at);
          if (away < distance) [best, distance] = [i, away];
        }
        const values = data.arrays[one.y];
        if (values.type !== "i24") throw new Error(`expected integers of three bytes, not ${values.type}`);
        const raw = (y.getInt8(3 * best + 2) << 16) | y.getUint16(3 * best, true);
        return raw === -8388608 ? NaN : values.base + values.scale * raw;
      },
      Number(/([\d.]+)/.exec(words ?? "")?.[1]),
    );
    if (Number.isFinite(truth))
      expect(Math.abs(Number.parseFloat(shown[0] ?? "") - truth)).toBeLessThan(0.02 * truth + 8);
    await page.mouse.move(5, 5);
    expect(await other.locator(".readout").textContent()).toBe("");
  });

  it("can be used by keyboard only", async () => {
    const figure = await panel(page, "latency");
    await figure.locator(".plot").focus();
    await page.keyboard.press("ArrowRight");
    const first = await figure.locator(".readout").textContent();
    await page.keyboard.press("ArrowRight");
    expect(first).toMatch(/^Time /);
    expect(await figure.locator(".readout").textContent()).not.toBe(first);
    await page.keyboard.press("+");
    await page.keyboard.press("+");
    const [from, to] = await range(page, "latency");
    expect(to - from).toBeLessThan(18);
    await page.keyboard.press("Shift+ArrowRight");
    expect((await range(page, "latency"))[0]).toBeGreaterThan(from);
    await page.keyboard.press("0");
    expect((await range(page, "latency"))[1]).toBeGreaterThan(69);
    // Tab moves from the plot to its series.
    const reached: string[] = [];
    for (let i = 0; i < 4; i++) {
      await page.keyboard.press("Tab");
      reached.push(await page.evaluate(() => document.activeElement?.querySelector(".name")?.textContent ?? ""));
    }
    expect(reached).toEqual(["ICMP", "UDP BE", "UDP BK", "UDP EF"]);
    await page.keyboard.press("Enter");
    expect(await figure.locator(".legend button").nth(3).getAttribute("aria-pressed")).toBe("false");
    await page.waitForTimeout(400);
    await page.keyboard.press("Enter");
    // The keyboard reaches every control, and every control has a name.
    const controls = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>("button, a, summary, input, [tabindex]")].map((node) => ({
        name: node.getAttribute("aria-label") ?? node.textContent?.trim() ?? "",
        reachable: node.tabIndex >= 0 || node.id === "content",
      })),
    );
    expect(controls.length).toBeGreaterThan(80);
    expect(controls.filter((one) => one.name === "" && one.reachable).length).toBeLessThanOrEqual(
      await page.locator("pre[tabindex]").count(),
    );
    expect(controls.every((one) => one.reachable)).toBe(true);
  });
});

describe("a report of two runs", () => {
  it("shows them in common plots and each separately", async () => {
    const { page, problems, close } = await open(browser, "two.html");
    expect(await page.locator("#overview table tbody tr").count()).toBe(2);
    const overlaid = page.locator('#overview figure[data-panel="latency-cdf"]');
    await overlaid.scrollIntoViewIfNeeded();
    expect(await overlaid.locator(".legend button").count()).toBe(16);
    expect(await page.locator("article").count()).toBe(2);
    expect(problems).toEqual([]);
    await picture(page, "two");
    await close();
  });
});
