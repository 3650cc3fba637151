// SPDX-License-Identifier: MIT OR Apache-2.0
// An exported directory: the page of the explorer without a server, opened as a file.

import { linkSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { launch, openAddress, panel, pixels, SAMPLES, type Opened } from "./browser";
import { exported } from "./served";

const BLUE = "#015fd5";

let browser: Browser;
let directory: string;
let address: string;

beforeAll(async () => {
  browser = await launch();
  directory = mkdtempSync(path.join(tmpdir(), "ktrxer-site-"));
  mkdirSync(path.join(directory, "runs", "below"), { recursive: true });
  for (const name of ["rrul", "hostile", "empty", "damaged", "below/codel"])
    linkSync(path.resolve(SAMPLES, `${path.basename(name)}.ktrxer`), path.join(directory, "runs", `${name}.ktrxer`));
  const page = path.join(directory, "site.html");
  exported(path.join(directory, "runs"), page, "column=settings/cc&run=rrul.ktrxer&plot=ping");
  address = pathToFileURL(page).href;
}, 120_000);
afterAll(async () => {
  await browser.close();
  rmSync(directory, { recursive: true });
});

const open = (view = ""): Promise<Opened> => openAddress(browser, `${address}${view}`);
const row = (page: Page, name: string): ReturnType<Page["locator"]> => page.locator(`tr[data-name="${name}"]`);

describe("an exported directory", () => {
  it("shows its first view, other runs and other plots, and requests nothing", async () => {
    const { page, problems, close } = await open();
    await panel(page, "latency");
    expect(await pixels(page, "latency", BLUE)).toBeGreaterThan(100);
    expect(await row(page, "rrul.ktrxer").innerText()).toContain("cubic");
    await row(page, "below/codel.ktrxer").locator("td").nth(2).click();
    await page.getByRole("heading", { name: "Home router, fq_codel" }).waitFor();
    await page.locator("body").press("]");
    await page.locator('figure[data-panel="latency-cdf"]').waitFor();
    await row(page, "rrul.ktrxer").getByRole("checkbox").check();
    await page.locator("body").press("j");
    await page.getByRole("heading", { name: "Home router, pfifo" }).waitFor();
    await row(page, "hostile.ktrxer").getByRole("checkbox").check();
    await page.getByRole("tab", { name: "Metadata" }).click();
    await page.getByText("values in which the runs differ").waitFor();
    expect(await page.getByRole("tab").count()).toBe(2);
    expect(problems).toEqual([]);
    await close();
  });

  it("searches for words, and says what only the server can do", async () => {
    const { page, problems, close } = await open();
    const count = (): Promise<number> => page.locator("tr[data-name]").count();
    await row(page, "rrul.ktrxer").waitFor();
    expect(await count()).toBe(5);
    await page.locator("input[type=search]").fill("fq_codel");
    await expect.poll(count).toBe(1);
    await page.locator("input[type=search]").fill("cc=cubic");
    await page.getByText("A condition: `ktrxer view`").waitFor();
    await page.locator("input[type=search]").fill("");
    expect(await page.getByRole("button", { name: "Save as SVG" }).count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it("shows names of hostile runs as text, and reasons for runs without plots", async () => {
    const { page, problems, close } = await open("#run=hostile.ktrxer");
    await page.locator("figure.panel canvas").first().waitFor();
    expect(await page.evaluate(() => (window as unknown as { pwned?: unknown }).pwned)).toBe(undefined);
    expect(await page.locator("img, iframe, object, svg[onload]").count()).toBe(0);
    expect(await row(page, "hostile.ktrxer").innerText()).toContain("</title><svg onload=window.pwned=5>");
    await row(page, "empty.ktrxer").locator("td").nth(2).click();
    await page.getByText("it has no samples to plot").waitFor();
    await row(page, "damaged.ktrxer").locator("td").nth(2).click();
    await page.getByText("latency samples cannot be read").waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
