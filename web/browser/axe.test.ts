// SPDX-License-Identifier: MIT OR Apache-2.0
// The pages under the rules of axe-core.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { violations } from "./axe";
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

/** The parts of a tree are made when their branch is opened, so a second pass opens those inside. */
async function unfold(page: Page): Promise<void> {
  for (let pass = 0; pass < 3; pass++) {
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}

/** One fault of each of these rules of axe-core is in the page of the first test. */
const BAD = [
  "button-name",
  "color-contrast",
  "definition-list",
  "empty-table-header",
  "html-has-lang",
  "label:",
  "label-content-name-mismatch",
  "landmark-one-main",
  "target-size",
];

describe("the rules of axe-core", () => {
  it("find the faults of a bad page", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.setContent(
      "<body><button></button><input><p style='color:#999;background:#fff'>faint</p>" +
        "<dl><div><details></details></div></dl>" +
        "<table><tr><th></th></tr></table><button aria-label=other>words</button>" +
        "<style>.small{padding:0;border:0;width:9px;height:9px}</style>" +
        "<button class=small>a</button><button class=small>b</button>",
    );
    const found = (await violations(page)).join("\n");
    for (const rule of BAD) expect(found).toContain(rule);
    await context.close();
  });
});

// Dark differs only in the colours, which one report has all of.
describe.each([
  ["light", ["rrul.html", "compared.html", "damaged.html"], { colorScheme: "light" }],
  ["dark", ["rrul.html"], { colorScheme: "dark" }],
  [
    "as wide as a phone",
    ["rrul.html", "compared.html"],
    { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
  ],
] as const)("%s", (_, reports, options) => {
  it.each(reports)("%s has no violation", async (name) => {
    const { page, close } = await open(browser, name, options);
    await unfold(page);
    expect(await violations(page)).toEqual([]);
    await close();
  });

  const chosen = "&run=rrul.ktrxer&run=codel.ktrxer&run=damaged.ktrxer&plot=ping&column=settings/cc";
  it.each([
    ["table", "", "tr[data-name]"],
    ["picture", `${chosen}&tab=picture`, ".stage canvas"],
    ["comparison", `${chosen}&tab=compare&by=title`, ".compare td"],
    ["metadata", `${chosen}&tab=metadata`, ".metadata summary"],
  ])("the explorer's %s has no violation", async (part, chosen, drawn) => {
    const { page, close } = await openAddress(browser, `${server.address}${chosen}`, options);
    await page.locator(drawn).first().waitFor();
    await unfold(page);
    expect(await violations(page)).toEqual([]);
    if (part === "table") {
      await page.locator("body").press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
      expect(await violations(page)).toEqual([]);
    }
    await close();
  });
});
