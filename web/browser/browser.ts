// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives Debian's Chromium. It opens the pages as files, as users do.

import { pathToFileURL } from "node:url";
import path from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

export const EXECUTABLE = process.env.KTRXER_CHROMIUM ?? "/usr/bin/chromium";
export const SAMPLES = process.env.KTRXER_SAMPLES ?? "samples";
/** A directory for screenshots of the pages; undefined: no screenshots. */
export const PICTURES = process.env.KTRXER_PICTURES;

export async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      "--no-sandbox", // the tests run as root in a container; the pages come from these tests
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

export interface Opened {
  page: Page;
  /** Console errors, exceptions, dialogs, and requests for anything but the file itself. */
  problems: string[];
  /** The processor time that the page's own thread has used, in ms: other work of the machine does not change it. */
  busy(): Promise<number>;
  close(): Promise<void>;
}

export async function open(browser: Browser, name: string, options: BrowserContextOptions = {}): Promise<Opened> {
  return openAddress(browser, pathToFileURL(path.resolve(SAMPLES, name)).href, options);
}

/** A page of a server may also call its server. */
export async function openAddress(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  const own = address.startsWith("http") ? `${new URL(address).origin}/` : null;
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const to = request.url();
    if (own !== null ? to.startsWith(own) : to.split("#")[0] === address.split("#")[0]) return;
    if (!to.startsWith("data:") && !to.startsWith("blob:")) problems.push(`request: ${to}`);
  });
  const metrics = await context.newCDPSession(page);
  await metrics.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async (): Promise<number> => {
    const task = (await metrics.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration");
    if (!task) throw new Error("this browser does not measure the time of its tasks");
    return 1000 * task.value;
  };
  await page.goto(address);
  if (options.javaScriptEnabled !== false) {
    await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  }
  return { page, problems, busy, close: () => context.close() };
}

/** The panel with that key, after it was drawn. */
export async function panel(page: Page, key: string): Promise<ReturnType<Page["locator"]>> {
  const found = page.locator(`figure[data-panel="${key}"]`).first();
  await found.evaluate((figure) => figure.closest("details")?.setAttribute("open", ""));
  await found.scrollIntoViewIfNeeded();
  await found.locator("canvas").waitFor();
  return found;
}

/** The number of pixels with that colour in the whole canvas of a panel, or above its plot. */
export async function pixels(page: Page, key: string, color: string, where: "all" | "above" = "all"): Promise<number> {
  return page.evaluate(
    ([key, color, where]) => {
      const canvas = document.querySelector<HTMLCanvasElement>(`figure[data-panel="${key}"] canvas`);
      const context = canvas?.getContext("2d");
      if (!canvas || !context) throw new Error(`no canvas in ${key}`);
      const [r, g, b] = [1, 3, 5].map((at) => parseInt((color ?? "").slice(at, at + 2), 16)) as [
        number,
        number,
        number,
      ];
      const plot = document.querySelector<HTMLElement>(`figure[data-panel="${key}"] .u-over`);
      const height =
        where === "all" ? canvas.height : Math.floor(((plot?.offsetTop ?? 0) * canvas.height) / canvas.clientHeight);
      const { data } = context.getImageData(0, 0, canvas.width, height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (
          Math.abs((data[i] ?? 0) - r) + Math.abs((data[i + 1] ?? 0) - g) + Math.abs((data[i + 2] ?? 0) - b) < 12 &&
          (data[i + 3] ?? 0) > 200
        )
          count++;
      }
      return count;
    },
    [key, color, where],
  );
}
