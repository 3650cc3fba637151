// SPDX-License-Identifier: MIT OR Apache-2.0
// Reports of hostile runs, and modified reports: the page executes no text of them and shows their intact parts.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "playwright-core";
import { launch, open, panel, PICTURES } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(async () => browser.close());

const pwned = (): unknown => (window as unknown as { pwned?: unknown }).pwned;

describe("a hostile run", () => {
  it("is shown as text, and no text of it is executed", async () => {
    const { page, problems, close } = await open(browser, "hostile.html");
    expect(await page.evaluate(() => document.documentElement.dataset.ready)).toBe("yes");
    for (const figure of await page.locator("figure.panel").all()) {
      await figure.scrollIntoViewIfNeeded();
      await figure.locator("canvas").waitFor();
    }
    for (const closed of await page.locator("details").all())
      await closed.evaluate((node) => ((node as HTMLDetailsElement).open = true));
    await page.locator('input[type="search"]').fill("script");
    await page.locator(".legend button").first().hover();
    await page.waitForTimeout(200);
    expect(await page.evaluate(pwned)).toBe(undefined);
    expect(problems).toEqual([]);
    const made = await page.evaluate(() => ({
      scripts: document.querySelectorAll("script").length,
      strange: document.querySelectorAll("img, iframe, object, embed, svg[onload], [onclick], [onerror], base, form")
        .length,
      polluted: ({} as Record<string, unknown>).polluted,
      wide: document.documentElement.scrollWidth <= innerWidth,
    }));
    expect(made).toEqual({ scripts: 2, strange: 0, polluted: undefined, wide: true });
    expect(await page.locator("h1").innerText()).toContain("<script>window.pwned=1</script>");
    expect(await page.title()).toContain("</title><svg onload=window.pwned=5>");
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/hostile.png` });
    await close();
  });

  it("stays text without JavaScript", async () => {
    const { page, problems, close } = await open(browser, "hostile.html", { javaScriptEnabled: false });
    expect(await page.locator("main").innerText()).toContain("<script>window.pwned=1</script>");
    expect(await page.locator("img, iframe, svg").count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });
});

describe("the page's own policy", () => {
  it("lets no text become markup and blocks other scripts", async () => {
    const { page, close } = await open(browser, "rrul.html");
    const outcome = await page.evaluate(async () => {
      const tried: Record<string, string> = {};
      const attempt = (name: string, what: () => void): void => {
        try {
          what();
          tried[name] = "done";
        } catch {
          tried[name] = "refused";
        }
      };
      attempt("innerHTML", () => (document.body.innerHTML += "<b>bold</b>"));
      attempt("handler", () => document.body.setAttribute("onclick", "window.pwned=9"));
      document.body.click();
      // The page itself makes the request, because the policy does not apply to requests of the driver.
      await new Promise<void>((done) => setTimeout(() => (attempt("eval", () => (0, eval)("1")), done())));
      tried.fetch = await fetch("data:text/plain,hello").then(
        () => "done",
        () => "refused",
      );
      return tried;
    });
    expect(outcome.innerHTML).toBe("refused");
    expect(outcome.eval).toBe("refused");
    expect(outcome.fetch).toBe("refused");
    expect(await page.evaluate(pwned)).toBe(undefined);
    await close();
  });

  it("blocks a script that was inserted later", async () => {
    const { page, problems, close } = await open(browser, "injected.html");
    await page.mouse.click(600, 400);
    expect(await page.evaluate(pwned)).toBe(undefined);
    expect(problems.some((text) => text.includes("Content Security Policy"))).toBe(true);
    expect(await page.evaluate(() => document.documentElement.dataset.ready)).toBe("yes");
    await close();
  });
});

describe("a damaged report", () => {
  it("shows an error and the static figures", async () => {
    const { page, close } = await open(browser, "cut.html");
    expect(await page.evaluate(() => document.documentElement.dataset.ready)).toBe("failed");
    expect(await page.getByRole("alert").innerText()).toContain("truncated or was changed");
    expect(await page.locator("main").innerText()).toContain("Verdict: valid");
    await close();
  });

  it("leaves out a plot with damaged samples, and shows the others", async () => {
    const { page, problems, close } = await open(browser, "column.html");
    expect(await page.getByText(/Not drawn: a column should hold/).count()).toBeGreaterThan(0);
    await panel(page, "throughput-down"); // the damaged column is that of the first panel, the round trips
    expect(problems).toEqual([]);
    await close();
  });

  it("of a damaged run names the lost samples", async () => {
    const { page, problems, close } = await open(browser, "damaged.html");
    expect(await page.getByRole("alert").innerText()).toContain("latency samples cannot be read");
    await page.locator('figure[data-panel="throughput-down"] canvas').waitFor();
    expect(await page.locator('figure[data-panel="latency"]').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it("of a run without samples says so", async () => {
    const { page, problems, close } = await open(browser, "empty.html");
    expect(await page.locator("main").innerText()).toContain("This run has no samples to plot.");
    expect(await page.locator("main").innerText()).toContain("no runner of the kind flow was left");
    expect(problems).toEqual([]);
    await close();
  });
});
