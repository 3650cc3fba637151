// SPDX-License-Identifier: MIT OR Apache-2.0
// Screenshots of the pages beside those of golden/, an eighth as large: the shape of single letters does not count.
//
//     KTRXER_GOLDEN=write, and look at the new pictures: after a wanted change

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launch, open, openAddress, panel } from "./browser";
import { view, type Served } from "./served";

const GOLDEN = path.join(path.dirname(fileURLToPath(import.meta.url)), "golden");
const WRITE = process.env.KTRXER_GOLDEN === "write";
const TOLERANCE = 0.03; // share of the small pixels that may have another colour

let browser: Browser;
let server: Served;
beforeAll(async () => {
  browser = await launch();
  server = await view(["rrul", "codel"]);
}, 120_000);
afterAll(async () => {
  await server.end();
  await browser.close();
});

/** The screenshot an eighth as large, as PNG, and the share of its pixels that differ from the golden one. */
async function compared(shot: Buffer, golden: Buffer | null): Promise<{ small: string; share: number }> {
  const page = await browser.newPage();
  const found = await page.evaluate(
    async ([now, then]) => {
      const load = async (data: string): Promise<HTMLImageElement> => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        return image;
      };
      const draw = (image: HTMLImageElement, width: number, height: number): [HTMLCanvasElement, Uint8ClampedArray] => {
        const canvas = Object.assign(document.createElement("canvas"), { width, height });
        const context = canvas.getContext("2d", { willReadFrequently: true });
        if (!context) throw new Error("no canvas");
        context.imageSmoothingQuality = "high";
        context.drawImage(image, 0, 0, width, height);
        return [canvas, context.getImageData(0, 0, width, height).data];
      };
      const image = await load(now ?? "");
      const old = then ? await load(then) : null;
      const width = old?.width ?? Math.round(image.width / 8);
      const height = old?.height ?? Math.round(image.height / 8);
      const [canvas, data] = draw(image, width, height);
      let other = 0;
      if (old) {
        if (Math.abs(image.height / image.width / (height / width) - 1) > 0.05) return { small: "", share: 1 };
        const [, before] = draw(old, width, height);
        for (let i = 0; i < data.length; i += 4)
          if ([0, 1, 2].some((k) => Math.abs((data[i + k] ?? 0) - (before[i + k] ?? 0)) > 32)) other++;
      }
      return { small: canvas.toDataURL("image/png").split(",")[1] ?? "", share: other / (width * height) };
    },
    [shot.toString("base64"), golden?.toString("base64") ?? ""],
  );
  await page.close();
  return found;
}

async function asGolden(name: string, shot: Buffer): Promise<number> {
  const file = path.join(GOLDEN, `${name}.png`);
  if (WRITE) writeFileSync(file, Buffer.from((await compared(shot, null)).small, "base64"));
  return (await compared(shot, readFileSync(file))).share;
}

const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true,
};
const loaded = async (page: Page): Promise<Buffer> => {
  await panel(page, "latency");
  await page.evaluate(() => scrollTo(0, 0));
  return page.screenshot();
};

describe("a screenshot is as the golden one", () => {
  it.each([
    ["report", {}],
    ["report-dark", { colorScheme: "dark" }],
    ["report-phone", PHONE],
  ] as [string, BrowserContextOptions][])("of the top of a report: %s", async (name, options) => {
    const { page, close } = await open(browser, "rrul.html", options);
    expect(await asGolden(name, await loaded(page))).toBeLessThan(TOLERANCE);
    await close();
  });

  it("of a plot; not if its lines are missing", async () => {
    const { page, close } = await open(browser, "rrul.html");
    const plot = await panel(page, "latency");
    expect(await asGolden("plot", await plot.screenshot())).toBeLessThan(TOLERANCE);
    if (!WRITE) {
      await plot.evaluate((figure) => {
        const canvas = figure.querySelector("canvas");
        canvas?.getContext("2d")?.clearRect(0, 0, canvas.width, canvas.height);
      });
      expect(await asGolden("plot", await plot.screenshot())).toBeGreaterThan(TOLERANCE);
    }
    await close();
  });

  it("of the explorer with a run", async () => {
    const { page, close } = await openAddress(browser, server.address);
    await page.locator('tr[data-name="rrul.ktrxer"] td').nth(2).click();
    for (const key of ["throughput-up", "throughput-down"]) await panel(page, key);
    await page.evaluate(() => scrollTo(0, 0));
    expect(await asGolden("explorer", await page.screenshot())).toBeLessThan(TOLERANCE);
    await close();
  });
});
