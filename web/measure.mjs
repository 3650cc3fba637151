// SPDX-License-Identifier: MIT OR Apache-2.0
// node measure.mjs: figures of the explorer in Chromium, on a machine without other work:
//   the time until the first picture of a run of 60 series, and until the next plot of it;
//   the frames a second while a picture of a million samples moves;
//   the time until the table of 10,000 runs is there, and its longest frame while it scrolls and is searched.
// Each figure is taken ROUNDS times; the median, and all values, are printed.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const PYTHON = process.env.KTRXER_PYTHON ?? "python3";
const MOVING_MS = 3000;

const place = mkdtempSync(path.join(tmpdir(), "ktrxer-figures-"));
const browser = await chromium.launch({
  executablePath: process.env.KTRXER_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});

async function serve(directory) {
  const words = ["-m", "ktrxer", "view", path.join(place, directory)];
  const server = spawn(PYTHON, words, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, XDG_CACHE_HOME: place },
  });
  const address = await new Promise((done) => createInterface({ input: server.stdout }).once("line", done));
  return { server, address };
}

function print(what, unit, values, goal) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1];
  const all = sorted.map((one) => one.toFixed(0)).join(", ");
  console.log(`figure: ${what}: ${middle.toFixed(0)} ${unit} (goal ${goal}; ${all})`);
}

/** In the page: `act` before each frame; the frames a second and the longest time between two. */
async function moving(page, act, milliseconds) {
  return page.evaluate(
    async ([source, milliseconds]) => {
      const act = new Function("i", source);
      const times = [];
      const begin = performance.now();
      for (let i = 0; performance.now() - begin < milliseconds; i++) {
        act(i);
        times.push(await new Promise(requestAnimationFrame));
      }
      const gaps = times.slice(1).map((time, i) => time - times[i]);
      return { rate: (1000 * gaps.length) / (times[times.length - 1] - times[0]), longest: Math.max(...gaps) };
    },
    [act, milliseconds],
  );
}

/** The policy of the page forbids code from text, so that of the driver is allowed by this context. */
async function open(address) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  return { page, close: () => context.close() };
}

const drawn = (page) => page.locator("figure.panel canvas").first().waitFor();

try {
  execFileSync(PYTHON, [fileURLToPath(new URL("../tests/python/explore_figures.py", import.meta.url)), place]);
  console.log(`load of the machine: ${loadavg()[0].toFixed(2)}`);

  const first = [];
  const next = [];
  for (let i = 0; i < ROUNDS; i++) {
    // A new server each time: it has read nothing.
    const { server, address } = await serve("sixty");
    const { page, close } = await open(`${address}&plot=ping`);
    const row = page.locator("tr[data-name]").first();
    await row.waitFor();
    let begin = performance.now();
    await row.locator("td").nth(2).click();
    await drawn(page);
    first.push(performance.now() - begin);
    begin = performance.now();
    await page.keyboard.press("]");
    await page.locator('figure[data-panel="latency-cdf"] canvas').waitFor();
    next.push(performance.now() - begin);
    await close();
    server.kill();
  }
  print("first picture of a run of 60 series after the click", "ms", first, 500);
  print("the next plot of it after the key", "ms", next, 500);

  const rates = [];
  const longest = [];
  {
    const { server, address } = await serve("million");
    for (let i = 0; i < ROUNDS; i++) {
      const { page, close } = await open(`${address}&plot=ping&run=million.ktrxer`);
      await drawn(page);
      for (let zoom = 0; zoom < 3; zoom++) await page.getByRole("button", { name: "Zoom in" }).first().click();
      await page.locator(".stage[data-refined]").waitFor();
      const found = await moving(
        page,
        `document.querySelector("figure.panel .plot").dispatchEvent(
           new KeyboardEvent("keydown", { key: i % 60 < 30 ? "ArrowRight" : "ArrowLeft", shiftKey: true }))`,
        MOVING_MS,
      );
      rates.push(found.rate);
      longest.push(found.longest);
      await close();
    }
    server.kill();
  }
  print("moves of a picture of a million samples", "frames a second", rates, 30);
  print("longest of these frames", "ms", longest, 100);

  const tables = [];
  const scrolls = [];
  const searches = [];
  {
    const { server, address } = await serve("many");
    for (let i = 0; i <= ROUNDS; i++) {
      const begin = performance.now();
      const { page, close } = await open(address);
      await page.locator("tr[data-name]").first().waitFor();
      // The first time fills the cache.
      if (i > 0) tables.push(performance.now() - begin);
      else console.log(`figure: table of 10,000 runs without the cache: ${(performance.now() - begin).toFixed(0)} ms`);
      scrolls.push((await moving(page, `document.querySelector(".rows").scrollTop += 397`, MOVING_MS)).longest);
      searches.push(
        (
          await moving(
            page,
            `const search = document.querySelector("input[type=search]");
             search.value = "run-" + i;
             search.dispatchEvent(new Event("input", { bubbles: true }))`,
            MOVING_MS / 3,
          )
        ).longest,
      );
      await close();
    }
    server.kill();
  }
  print("table of 10,000 runs, with the start of the page", "ms", tables, 1000);
  print("longest frame while it scrolls", "ms", scrolls, 100);
  print("longest frame while a word is typed", "ms", searches, 100);
} finally {
  await browser.close();
  rmSync(place, { recursive: true });
}
