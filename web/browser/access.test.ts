// SPDX-License-Identifier: MIT OR Apache-2.0
// The pages for people with a keyboard, a screen reader or weak eyes.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { faults, stops } from "./access";
import { launch, open, openAddress } from "./browser";
import { view, type Served } from "./served";

let browser: Browser;
let server: Served;

beforeAll(async () => {
  browser = await launch();
  server = await view(["rrul", "codel", "damaged"]);
}, 120_000);
afterAll(async () => {
  await server.end();
  await browser.close();
});

async function unfold(page: Page): Promise<void> {
  for (const one of await page.locator("details").all())
    await one.evaluate((node) => ((node as HTMLDetailsElement).open = true));
}

const BAD = [
  "no name: button",
  "no name: input",
  "no label: div",
  "contrast 2.8",
  "two elements with the id a",
  "aria-controls names no element",
  "not one selected tab",
  "a table without heads",
  "a hidden control",
  "an order of its own",
  "none of its words",
  "no language",
  "no title",
  "0 main parts",
  "not one heading of level 1",
  "a heading of level 3",
];

describe("the checks", () => {
  it("find the faults of a bad page", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.setContent(
      "<body><h3>too deep</h3><button></button><input><p style='color:#999;background:#fff'>faint</p>" +
        "<i id=a></i><b id=a></b>" +
        "<div role=tablist><button role=tab aria-controls=nowhere>x</button></div><table><tr><td>1</td></tr></table>" +
        "<div aria-hidden=true><a href=x>hidden</a></div><button tabindex=3 aria-label=other>words</button>" +
        "<style>:focus{outline:none}</style></body>",
    );
    const found = (await faults(page)).join("\n");
    for (const part of BAD) expect(found).toContain(part);
    expect((await stops(page, 10)).some((one) => !one.seen)).toBe(true);
    await context.close();
  });
});

describe.each(["light", "dark"] as const)("with %s colours", (colorScheme) => {
  it.each(["rrul.html", "two.html", "damaged.html", "empty.html"])("the report %s has no fault", async (name) => {
    const { page, close } = await open(browser, name, { colorScheme });
    await unfold(page);
    expect(await faults(page)).toEqual([]);
    await close();
  });

  it.each(["picture", "compare", "metadata"])("the explorer's part %s has no fault", async (tab) => {
    const chosen = "&run=rrul.ktrxer&run=codel.ktrxer&run=damaged.ktrxer&plot=ping&column=settings/cc";
    const { page, close } = await openAddress(browser, `${server.address}${chosen}&tab=${tab}`, { colorScheme });
    await page.locator("#tabpanel > section:not([hidden]) :is(canvas, td, summary)").first().waitFor();
    await unfold(page);
    expect(await faults(page)).toEqual([]);
    await page.locator("body").press("?");
    expect(await faults(page)).toEqual([]);
    await close();
  });
});

/** A page that scrolls smoothly is not in its place when the key has been pressed. */
const STILL = { reducedMotion: "reduce" } as const;

describe("by keyboard", () => {
  it("each stop in a report is seen and in view", async () => {
    const { page, close } = await open(browser, "rrul.html", STILL);
    const made = await stops(page, 60);
    expect(made.length).toBeGreaterThan(20);
    expect(made[0]?.what).toContain("Skip to");
    expect(made.filter((one) => !one.seen || !one.inView)).toEqual([]);
    await close();
  });

  it("the explorer's table, tabs and picture are reached, and arrow keys turn the tabs", async () => {
    const { page, problems, close } = await openAddress(browser, `${server.address}&run=rrul.ktrxer&plot=ping`, STILL);
    await page.locator("figure.panel canvas").first().waitFor();
    const made = await stops(page, 80);
    expect(made.filter((one) => !one.seen || !one.inView)).toEqual([]);
    const words = made.map((one) => one.what).join("\n");
    for (const part of ["Skip to the picture", "Search the runs", "rrul.ktrxer in the", "select Plot", "Save as SVG"])
      expect(words).toContain(part);
    expect(made.filter((one) => /^button (Picture|Compare|Metadata)$/.test(one.what)).length).toBe(1);
    await page.getByRole("tab", { name: "Picture" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tab", { name: "Compare", selected: true }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("tab", { name: "Metadata", selected: true }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Metadata");
    expect(problems).toEqual([]);
    await close();
  });
});
