// SPDX-License-Identifier: MIT OR Apache-2.0
// `ktrxer view` in use: its server, and its page in a browser.

import { copyFileSync, linkSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { launch, openAddress, panel, PICTURES, pixels, SAMPLES, type Opened } from "./browser";
import { view, type Served } from "./served";

const BLUE = "#015fd5";
const COPIES = 18; // so many runs that the server thins their series

let browser: Browser;
let server: Served;

beforeAll(async () => {
  browser = await launch();
  server = await view(["rrul", "codel", "hostile", "empty", "damaged"]);
}, 120_000);
afterAll(async () => {
  await server.end();
  await browser.close();
});

const open = (view = "", options = {}): Promise<Opened> => openAddress(browser, `${server.address}${view}`, options);
const row = (page: Page, name: string): ReturnType<Page["locator"]> => page.locator(`tr[data-name="${name}"]`);
const title = (page: Page): Promise<string> => page.locator(".picture-title h2").innerText();

/** The machine of the tests may be busy. */
function settles<T>(read: () => Promise<T>, value: T): Promise<void> {
  return expect.poll(read, { timeout: 30_000 }).toEqual(value);
}

async function picture(page: Page, name: string): Promise<void> {
  if (!PICTURES) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: true });
}

describe("the explorer", () => {
  it("shows a run at a click, adds others by their ticks, and turns plots by keys", async () => {
    const { page, problems, close } = await open();
    await page.getByText("Choose runs in the table").waitFor();
    await row(page, "rrul.ktrxer").locator("td").nth(2).click();
    await panel(page, "throughput-down");
    expect(await title(page)).toBe("Home router, pfifo");
    await row(page, "codel.ktrxer").getByRole("checkbox").check();
    await page.getByText("2 runs", { exact: true }).waitFor();
    await page.locator("select[aria-label=Plot]").selectOption("ping");
    await panel(page, "latency");
    expect(await page.locator('figure[data-panel="latency"] .legend button').count()).toBe(8);
    expect(await pixels(page, "latency", BLUE)).toBeGreaterThan(100);
    await page.locator("body").press("]");
    await page.locator('figure[data-panel="latency-cdf"]').waitFor();
    await page.locator("body").press("[");
    await page.locator('figure[data-panel="latency"]').waitFor();
    // One at a time: a key turns to the other run.
    await page.locator("body").press("o");
    await page.getByRole("heading", { name: "Home router, pfifo" }).waitFor();
    await page.locator("body").press("j");
    await page.getByRole("heading", { name: "Home router, fq_codel" }).waitFor();
    await picture(page, "explorer-light");
    // The address opens the same view again.
    const again = await openAddress(browser, page.url());
    await panel(again.page, "latency");
    expect(await title(again.page)).toBe("Home router, fq_codel");
    expect(await again.page.locator(".chip").count()).toBe(2);
    expect([...problems, ...again.problems]).toEqual([]);
    await again.close();
    await close();
  });

  it("says that it is drawing until the first picture is there", async () => {
    const { page, problems, close } = await open();
    let arrived = (): void => undefined;
    const gate = new Promise<void>((done) => (arrived = done));
    await page.route("**/api/picture", async (route) => {
      await gate;
      await route.continue();
    });
    const status = page.locator(".drawing");
    expect(await status.innerText()).toBe("");
    await row(page, "rrul.ktrxer").locator("td").nth(2).click();
    await page.getByText("Drawing the run\u2026").waitFor();
    expect(await page.locator(".picture").getAttribute("aria-busy")).toBe("true");
    expect(await page.getByText("Choose runs in the table").count()).toBe(0);
    arrived();
    await page.locator("figure.panel canvas").first().waitFor();
    await settles(() => status.innerText(), "");
    expect(await page.locator(".picture").getAttribute("aria-busy")).toBe("false");
    // A picture that is there stays until the next one has come.
    await row(page, "codel.ktrxer").getByRole("checkbox").check();
    expect(await status.innerText()).toBe("");
    await page.getByText("2 runs", { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it("finds runs by words, facets and conditions, and has any property as a column", async () => {
    const { page, problems, close } = await open("&column=settings/cc");
    const count = (): Promise<number> => page.locator("tr[data-name]").count();
    await row(page, "rrul.ktrxer").waitFor();
    expect(await count()).toBe(5);
    expect(await row(page, "rrul.ktrxer").innerText()).toContain("cubic");
    await page.locator("body").press("/");
    await page.keyboard.type("router codel");
    await settles(count, 1);
    await page.locator("input[type=search]").fill("verdict!=valid");
    await settles(count, 2);
    await page.locator("input[type=search]").fill("verdict=");
    expect(await page.getByRole("alert").innerText()).toContain("expected a value");
    await page.locator("input[type=search]").fill("");
    await settles(count, 5);
    await page.locator('.facet[aria-label="verdict"] button', { hasText: "invalid 2" }).click();
    await settles(count, 2);
    expect(problems.filter((text) => !text.includes("422"))).toEqual([]);
    await close();
  });

  it("gets finer samples for the part of the time in view", async () => {
    const names = Array.from({ length: COPIES }, (_, i) => `copy-${i}`);
    const many = await view(names, "rrul");
    const chosen = names.map((name) => `&run=${name}.ktrxer`).join("");
    const { page, problems, close } = await openAddress(browser, `${many.address}${chosen}&plot=ping`);
    const figure = await panel(page, "latency");
    expect(await figure.getByText(/drawn with .* of its 7,000 samples/).count()).toBeGreaterThan(0);
    const drawn = Number(await figure.getAttribute("data-drawn"));
    console.log(`figure: picture of ${4 * COPIES} series after ${drawn} ms, with the start of the page`);
    for (let i = 0; i < 4; i++) await figure.getByRole("button", { name: "Zoom in" }).click();
    await page.locator(".stage[data-refined]").waitFor();
    expect(page.url()).toContain("from=");
    const moved = (frames: boolean): Promise<number> =>
      page.evaluate(async (frames) => {
        const plot = document.querySelector<HTMLElement>('figure[data-panel="latency"] .plot');
        const stage = document.querySelector<HTMLElement>(".stage");
        const real = window.fetch;
        window.fetch = (...words) => {
          if (stage && words[0] === "/api/picture") stage.dataset.asked = String(Number(stage.dataset.asked ?? 0) + 1);
          return real(...words);
        };
        const begin = performance.now();
        for (let i = 0; i < 30; i++) {
          const key = i % 2 ? "ArrowLeft" : "ArrowRight";
          plot?.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true }));
          if (frames) await new Promise(requestAnimationFrame);
        }
        return 30_000 / (performance.now() - begin);
      }, frames);
    // The samples are fetched when the view rests, not at each move. It does not rest within one task, however long
    // that takes on a busy machine.
    const count = async (name: string): Promise<number> => Number(await page.locator(".stage").getAttribute(name));
    const before = await count("data-refined");
    await moved(false);
    await settles(async () => (await count("data-refined")) > before && (await count("data-asked")) > 0, true);
    expect(await count("data-asked")).toBe(1);
    console.log(`figure: ${(await moved(true)).toFixed(0)} moves of the view a second, ${4 * COPIES} series`);
    expect(problems).toEqual([]);
    await close();
    await many.end();
  });

  it("has the settings of a picture in its address, in fields and in the command", async () => {
    const { page, problems, close } = await open("&run=rrul.ktrxer&plot=ping&bounds-y=0,50&series=UDP%20*&part=whole");
    const figure = page.locator("figure.panel").first();
    await figure.locator("canvas").waitFor();
    expect(await figure.locator(".legend button").count()).toBe(3);
    expect(await page.locator("select[title^='which part']").inputValue()).toBe("whole");
    expect(await page.locator(".foot pre").innerText()).toContain("--part=whole --bounds-y=0,50 '--series=UDP *' -o");
    await page.getByText("Settings (3)").click();
    const field = (name: string): ReturnType<Page["locator"]> =>
      page.locator(".settings label", { has: page.getByText(name, { exact: true }) }).locator("input, textarea");
    expect(await field("bounds-y").inputValue()).toBe("0,50");
    expect(await field("series").inputValue()).toBe("UDP *");
    await field("bounds-x").fill("10,20");
    await field("bounds-x").press("Tab");
    // The fields are longer than the screen, and a panel is drawn when it comes near.
    await settles(async () => {
      await figure.scrollIntoViewIfNeeded();
      return `${await figure.getAttribute("data-from")}-${await figure.getAttribute("data-to")}`;
    }, "10-20");
    expect(page.url()).toContain("bounds-x=10%2C20");
    await field("no-legend").check();
    await settles(() => page.locator(".legend").count(), 0);
    await field("bounds-x").fill("20,10");
    await field("bounds-x").press("Tab");
    await page.getByText("bounds-x: '20,10' is wrong").waitFor();
    await page.getByRole("button", { name: "Remove all settings" }).click();
    await settles(() => page.locator(".legend button").count(), 4);
    expect(page.url()).not.toMatch(/bounds|series|legend|part/);
    expect(problems.filter((text) => !text.includes("422"))).toEqual([]);
    await close();
  });

  it("compares groups, and lists the metadata in which runs differ", async () => {
    const { page, problems, close } = await open("&run=rrul.ktrxer&run=codel.ktrxer&tab=compare&by=title");
    await page.getByRole("heading", { name: /against/, level: 2 }).waitFor();
    expect(await page.locator(".compare .answer").innerText()).toContain("too few runs for an interval");
    expect(await page.locator(".compare pre").innerText()).toContain("ktrxer compare ");
    await row(page, "hostile.ktrxer").getByRole("checkbox").check();
    await page.getByRole("tab", { name: "Metadata" }).click();
    await page.getByRole("button", { name: "Make settings/cc a column of the table" }).click();
    await page.getByRole("button", { name: "Sort by settings/cc" }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it("saves what is drawn", async () => {
    const { page, problems, close } = await open("&run=rrul.ktrxer&plot=ping");
    await panel(page, "latency");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as CSV" }).click(),
    ]);
    expect(readFileSync((await download.path()) ?? "", "utf8").split("\n")[0]).toBe(
      "panel,series,x,x unit,y,y unit,low,high,share",
    );
    expect(await page.locator(".foot pre").innerText()).toMatch(
      /^ktrxer plot .*rrul\.ktrxer --plot ping -o ping\.svg$/,
    );
    expect(problems).toEqual([]);
    await close();
  });

  it("shows a run that appears, and leaves out one that is removed", async () => {
    const { page, problems, close } = await open("&run=rrul.ktrxer&plot=ping");
    await panel(page, "latency");
    const late = path.join(server.directory, "late.ktrxer");
    copyFileSync(path.resolve(SAMPLES, "codel.ktrxer"), `${late}.tmp`);
    linkSync(`${late}.tmp`, late);
    await page.locator('tr.fresh[data-name="late.ktrxer"]').waitFor();
    await row(page, "late.ktrxer").getByRole("checkbox").check();
    await settles(() => page.locator(".chip").count(), 2);
    rmSync(late);
    rmSync(`${late}.tmp`);
    await settles(() => row(page, "late.ktrxer").count(), 0);
    expect(problems).toEqual([]);
    await close();
  });

  it("prints the picture, the comparison and the metadata, without its controls, black on white", async () => {
    const { page, problems, close } = await open("&run=rrul.ktrxer&run=codel.ktrxer&plot=all&tab=picture&by=title", {
      colorScheme: "dark",
    });
    await page.locator("figure.panel canvas").first().waitFor();
    const shown = (selector: string): Promise<number> => page.locator(`${selector} >> visible=true`).count();
    // Elements beyond the edge of the paper, or beyond the edge of a part that cannot be scrolled on paper.
    const cut = (): Promise<string[]> =>
      page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("main :is(canvas, table, td, th, p, h2, pre, figure, .table)")]
          .filter((node) => node.checkVisibility())
          .filter((node) => {
            const box = node.getBoundingClientRect();
            const holder = node.closest(".table, pre");
            return box.right > innerWidth + 1 || (holder !== null && holder.scrollWidth > holder.clientWidth + 1);
          })
          .map((node) => `${node.tagName} ${node.className} ${(node.textContent ?? "").slice(0, 40)}`),
      );
    const CONTROLS =
      ".top, .table-pane, .tabs, .controls, .settings, .tools, button:not(.legend button), input, select";
    for (const tab of ["Picture", "Compare", "Metadata"]) {
      await page.emulateMedia({ media: "screen" });
      await page.setViewportSize({ width: 1280, height: 200 }); // most panels are not in view
      await page.getByRole("tab", { name: tab }).click();
      await page.locator("#tabpanel > section:not([hidden]) :is(canvas, td, summary)").first().waitFor();
      const paper = await page.pdf({ format: "A4" });
      expect(paper.length, tab).toBeGreaterThan(20_000);
      expect(await page.locator("section:not([hidden]) figure.panel:not([data-drawn])").count(), tab).toBe(0);
      // As wide as A4 between margins of 12 mm.
      await page.setViewportSize({ width: 703, height: 1032 });
      await page.emulateMedia({ media: "print" });
      await settles(() => cut(), []);
      expect(await shown(CONTROLS), tab).toBe(0);
      expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
      await picture(page, `explorer-print-${tab.toLowerCase()}`);
      if (tab === "Picture") {
        expect(await title(page)).toContain("Throughput of each flow");
        expect(await shown("figure.panel canvas")).toBe(await page.locator("figure.panel").count());
        expect(await shown(".chip")).toBe(2);
      } else {
        const parts = tab === "Compare" ? ".compare h2, .compare td" : ".metadata summary";
        expect(await shown(parts)).toBeGreaterThan(1);
      }
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("fits a phone, and is dark at night", async () => {
    const { page, problems, close } = await open("&run=rrul.ktrxer&plot=ping_violin", {
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
      colorScheme: "dark",
    });
    await panel(page, "ping_violin");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wide).toBeLessThanOrEqual(0);
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await picture(page, "explorer-phone-dark");
    expect(problems).toEqual([]);
    await close();
  });
});

describe("bad input", () => {
  it("names of hostile runs stay text, and damaged runs are named", async () => {
    const { page, problems, close } = await open("&run=hostile.ktrxer&run=damaged.ktrxer&run=empty.ktrxer&plot=ping");
    await page.locator("figure.panel canvas").first().waitFor();
    expect(await page.locator(".reasons").first().innerText()).toContain("latency samples cannot be read");
    await page.getByRole("tab", { name: "Metadata" }).click();
    await page.getByText("values in which the runs differ").waitFor();
    for (const one of await page.locator("details").all())
      await one.evaluate((node) => ((node as HTMLDetailsElement).open = true));
    await page.locator("body").press("2");
    await page.locator(".compare p, .compare h2").first().waitFor();
    expect(await page.evaluate(() => (window as unknown as { pwned?: unknown }).pwned)).toBe(undefined);
    expect(await page.locator("script").count()).toBe(1);
    expect(await page.locator("img, iframe, object, svg[onload]").count()).toBe(0);
    expect(await row(page, "hostile.ktrxer").innerText()).toContain("</title><svg onload=window.pwned=5>");
    expect(problems.filter((text) => !text.includes("422"))).toEqual([]);
    await close();
  });

  it("a run without samples for the plot has a reason instead of a picture", async () => {
    const { page, close } = await open("&run=empty.ktrxer&plot=ping");
    expect(await page.locator(".picture [role=alert]").innerText()).toContain("no samples for the plot");
    await close();
  });

  it("an address without the token has a message and no data", async () => {
    const { page, close } = await openAddress(browser, server.address.replace(/#.*/, ""));
    expect(await page.getByRole("alert").innerText()).toContain("Open the whole address");
    await close();
    const wrong = await openAddress(browser, server.address.replace(/token=.*/, "token=wrong"));
    expect(await wrong.page.getByRole("alert").innerText()).toContain(
      "The token is not that of this explorer".slice(4),
    );
    await wrong.close();
  });

  it("a page of another site can neither call the explorer nor frame it", async () => {
    const other = createServer((_, answer) => answer.end("<!doctype html><title>another site</title>"));
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    const token = /token=([^&]*)/.exec(server.address)?.[1] ?? "";
    const found = await page.evaluate(
      async ([origin, token]) => {
        const attempt = (options: RequestInit): Promise<string> =>
          fetch(`${origin}/api/runs`, { method: "POST", body: "{}", ...options }).then(
            async (answer) => `status ${answer.status} ${await answer.text()}`,
            () => "refused",
          );
        const headers = { "Content-Type": "application/json", "X-Ktrxer-Token": token ?? "" };
        const frame = document.createElement("iframe");
        frame.src = `${origin}/`;
        const framed = new Promise((done) => frame.addEventListener("load", done));
        document.body.append(frame);
        await framed;
        return [
          await attempt({}),
          await attempt({ headers }), // even with the token
          await attempt({ mode: "no-cors" }),
          frame.contentDocument === null ? "no access" : "access",
        ];
      },
      [new URL(server.address).origin, token],
    );
    expect(found).toEqual(["refused", "refused", "refused", "no access"]);
    expect(page.frames().map((frame) => frame.url())).not.toContain(`${new URL(server.address).origin}/`);
    await context.close();
    other.close();
  });

  it("a server that ends is named, and what is drawn stays", async () => {
    const short = await view(["rrul"]);
    const { page, close } = await openAddress(browser, `${short.address}&run=rrul.ktrxer&plot=ping`);
    await panel(page, "latency");
    await short.end();
    await page.getByText("The explorer's server has ended").waitFor();
    expect(await page.locator('figure[data-panel="latency"] canvas').count()).toBe(1);
    await close();
  });
});
