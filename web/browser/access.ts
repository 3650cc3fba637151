// SPDX-License-Identifier: MIT OR Apache-2.0
// Checks of a page for people with a keyboard, a screen reader or weak eyes: those rules of WCAG 2.2, level AA, that a
// program can decide. Each fault is a line with the rule and the element.

import type { Page } from "playwright-core";

/** Names, roles, references, headings, contrast of what is visible now. */
export async function faults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const sign = (node: Element): string => {
      const kind = typeof node.className === "string" && node.className ? `.${node.className.split(" ")[0]}` : "";
      return `${node.tagName.toLowerCase()}${kind} ${(node.textContent ?? "").trim().slice(0, 30)}`.trim();
    };
    const fault = (rule: string, node: Element, more = ""): void => void found.push(`${rule}: ${sign(node)}${more}`);
    const every = (selector: string): Element[] => [...document.querySelectorAll(selector)];
    const visible = (node: Element): boolean => node.checkVisibility({ visibilityProperty: true });

    // 4.1.2: each control, and each part with a role that has a name, has one.
    const text = (ids: string | null): string =>
      (ids ?? "")
        .split(/\s+/)
        .map((id) => document.getElementById(id)?.textContent ?? "")
        .join(" ");
    const name = (node: Element): string => {
      const field = node instanceof HTMLInputElement || node instanceof HTMLSelectElement;
      const inside = field ? [...(node.labels ?? [])].map((one) => one.textContent) : [node.textContent];
      return [node.getAttribute("aria-label"), text(node.getAttribute("aria-labelledby")), ...inside]
        .map((one) => (one ?? "").trim())
        .join("");
    };
    const controls = "button, input, select, textarea, a[href], summary, [role=tab]";
    const named = "nav, dialog, [role=region], [role=toolbar], [role=tablist], [role=tabpanel], [role=group]";
    for (const node of every(controls)) if (visible(node) && !name(node)) fault("no name", node);
    for (const node of every(named)) {
      const given = `${node.getAttribute("aria-label") ?? ""}${text(node.getAttribute("aria-labelledby"))}`.trim();
      if (visible(node) && !given) fault("no label", node);
    }
    // 2.5.3: what a button shows is in its name, unless it is a sign.
    for (const node of every("button[aria-label]")) {
      const shown = (node.textContent ?? "").replace(/[^\p{L}\p{N} ]/gu, " ").trim().toLowerCase();
      const label = (node.getAttribute("aria-label") ?? "").toLowerCase();
      if (visible(node) && shown.length > 3 && !shown.split(/\s+/).some((word) => label.includes(word)))
        fault("its name has none of its words", node, ` is named ${label}`);
    }

    // References exist, ids are unique, roles are in their places.
    const ids = every("[id]").map((node) => node.id);
    for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i)))
      found.push(`two elements with the id ${id}`);
    for (const key of ["aria-controls", "aria-labelledby", "aria-describedby", "for", "list"])
      for (const node of every(`[${key}]`))
        for (const id of (node.getAttribute(key) ?? "").split(/\s+/))
          if (!document.getElementById(id)) fault(`${key} names no element`, node, ` -> ${id}`);
    for (const node of every("[role=tab]")) if (!node.closest("[role=tablist]")) fault("a tab without a list", node);
    for (const node of every("[role=tablist]"))
      if (node.querySelectorAll('[role=tab][aria-selected="true"]').length !== 1) fault("not one selected tab", node);
    for (const node of every('[aria-hidden="true"]'))
      if (node.querySelector("button, input, select, a[href]")) fault("a hidden control", node);
    for (const node of every("[tabindex]"))
      if ((node as HTMLElement).tabIndex > 0) fault("an order of its own", node);
    for (const node of every("table"))
      if (visible(node) && !node.querySelector("th")) fault("a table without heads", node);

    // The page: a language, a title, one main part, headings without gaps.
    if (!document.documentElement.lang) found.push("the page has no language");
    if (!document.title.trim()) found.push("the page has no title");
    if (every("main").length !== 1) found.push(`${every("main").length} main parts`);
    const levels = every("h1, h2, h3, h4, h5, h6").filter(visible);
    if (levels.filter((node) => node.tagName === "H1").length !== 1) found.push("not one heading of level 1");
    let last = 0;
    for (const node of levels) {
      const level = Number(node.tagName[1]);
      if (level > last + 1) fault(`a heading of level ${level} after one of level ${last}`, node);
      last = level;
    }

    // 1.4.3: the contrast of text is 4.5, of large text 3. A colour of any notation becomes a pixel.
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    if (!context) return ["no canvas"];
    const seen = new Map<string, number[]>();
    const rgba = (color: string): number[] => {
      let made = seen.get(color);
      if (!made) {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = color;
        context.fillRect(0, 0, 1, 1);
        const [r = 0, g = 0, b = 0, a = 0] = context.getImageData(0, 0, 1, 1).data;
        seen.set(color, (made = [r, g, b, a / 255]));
      }
      return made;
    };
    const over = (top: number[], under: number[], alpha: number): number[] =>
      [0, 1, 2].map((i) => (top[i] ?? 0) * alpha + (under[i] ?? 0) * (1 - alpha));
    const ground = (node: Element | null): number[] => {
      if (!node) return [255, 255, 255];
      const color = rgba(getComputedStyle(node).backgroundColor);
      const alpha = color[3] ?? 0;
      return alpha >= 1 ? color : over(color, ground(node.parentElement), alpha);
    };
    const luminance = (color: number[]): number => {
      const [r = 0, g = 0, b = 0] = color.slice(0, 3).map((one) => {
        const part = one / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const done = new Set<Element>();
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!node || done.has(node) || !walker.currentNode.textContent?.trim() || !visible(node)) continue;
      done.add(node);
      if (node.closest("script, style, noscript, option, [disabled]")) continue;
      // A hidden series is struck out and faint: the control is off.
      if (node.closest('.legend [aria-pressed="false"]')) continue;
      const style = getComputedStyle(node);
      const under = ground(node);
      const color = rgba(style.color);
      const drawn = over(color, under, color[3] ?? 1);
      const [low = 0, high = 0] = [luminance(drawn), luminance(under)].sort((a, b) => a - b);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const contrast = (high + 0.05) / (low + 0.05);
      if (contrast < (large ? 3 : 4.5)) fault(`contrast ${contrast.toFixed(2)}`, node);
    }
    return found;
  });
}

export interface Stop {
  what: string;
  /** Whether the focus is seen: an outline, or another border or ground. */
  seen: boolean;
  /** Whether the element is in the visible part of the page. */
  inView: boolean;
}

/** Where the Tab key stops, from the beginning of the page until it comes round or after `most` stops. */
export async function stops(page: Page, most: number): Promise<Stop[]> {
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    scrollTo(0, 0);
  });
  const made: Stop[] = [];
  for (let i = 0; i < most; i++) {
    await page.keyboard.press("Tab");
    const one = await page.evaluate(() => {
      const node = document.activeElement;
      if (!node || node === document.body) return null;
      const style = getComputedStyle(node);
      const box = node.getBoundingClientRect();
      const first = !("ktrxerStop" in node);
      Object.assign(node, { ktrxerStop: true });
      const what = node.getAttribute("aria-label") ?? (node.textContent ?? "").trim();
      return {
        first,
        what: `${node.tagName.toLowerCase()} ${what}`.slice(0, 60),
        seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
        inView: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
      };
    });
    if (!one?.first) break;
    made.push(one);
  }
  return made;
}
