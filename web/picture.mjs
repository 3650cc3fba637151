// SPDX-License-Identifier: MIT OR Apache-2.0
// node picture.mjs REPORT.html OUT.png [WIDTH HEIGHT]: a screenshot by Chromium.
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, out, width = "1100", height = "1500"] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.KTRXER_CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
try {
  const page = await browser.newPage({ viewport: { width: Number(width), height: Number(height) } });
  await page.goto(pathToFileURL(report).href);
  await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  await page.locator("figure.panel canvas").first().waitFor();
  await page.waitForTimeout(300); // what is in view is drawn
  await page.screenshot({ path: out });
} finally {
  await browser.close();
}
