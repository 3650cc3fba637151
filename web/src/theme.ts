// SPDX-License-Identifier: MIT OR Apache-2.0
// Light, dark and print colours. CSS colours the page; canvases read the colours here and redraw when they change.

import type { Palette } from "./data";
import { button } from "./dom";

export type Choice = "auto" | "light" | "dark";

export interface Ink {
  text: string;
  faint: string;
  grid: string;
  load: string;
  surface: string;
  series: string[];
}

const KEY = "ktrxer-theme";

export class Theme {
  private readonly listeners = new Set<() => void>();
  private readonly prefers = matchMedia("(prefers-color-scheme: dark)");
  private readonly paper = matchMedia("print");
  private printing = false;
  private cached: Ink | null = null;
  choice: Choice = "auto";

  constructor(private readonly palette: Palette) {
    try {
      // A page opened from a file may have no storage: then the choice is lost when the page is closed.
      const stored = localStorage.getItem(KEY);
      if (stored === "light" || stored === "dark") this.choice = stored;
    } catch {
      /* no storage */
    }
    this.prefers.addEventListener("change", () => this.changed());
    const print = (on: boolean): void => {
      if (this.printing === on) return;
      this.printing = on;
      this.changed();
    };
    this.paper.addEventListener("change", (event) => print(event.matches));
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    this.changed();
  }

  get dark(): boolean {
    if (this.printing) return false;
    return this.choice === "auto" ? this.prefers.matches : this.choice === "dark";
  }

  set(choice: Choice): void {
    this.choice = choice;
    try {
      if (choice === "auto") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, choice);
    } catch {
      /* no storage */
    }
    this.changed();
  }

  /** The function that is returned ends it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  get ink(): Ink {
    if (!this.cached) {
      const style = getComputedStyle(document.documentElement);
      const get = (name: string): string => style.getPropertyValue(name).trim();
      this.cached = {
        text: get("--text"),
        faint: get("--faint"),
        grid: get("--grid"),
        load: get("--load"),
        surface: get("--surface"),
        series: this.dark ? this.palette.dark : this.palette.light,
      };
    }
    return this.cached;
  }

  private changed(): void {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    this.cached = null;
    for (const listener of this.listeners) listener();
  }
}

/** A style sheet with a class c0, c1, ... for each colour of the palette, as legends use them. The style API accepts
 * only a colour there, so no other style can be injected. */
export function colourSheet(theme: Theme, palette: Palette): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  palette.light.forEach((_, i) => {
    sheet.insertRule(`.c${i} {}`);
    const rule = sheet.cssRules[0] as CSSStyleRule;
    const paint = (): void => rule.style.setProperty("color", theme.ink.series[i] ?? "");
    paint();
    theme.onChange(paint);
  });
  return sheet;
}

export function themeButton(theme: Theme): HTMLElement {
  const order: Choice[] = ["auto", "light", "dark"];
  const words = { auto: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
  const signs = { auto: "\u25d0", light: "\u25cb", dark: "\u25cf" };
  const node = button(
    signs[theme.choice],
    words[theme.choice],
    () => {
      theme.set(order[(order.indexOf(theme.choice) + 1) % order.length] as Choice);
      node.textContent = signs[theme.choice];
      node.title = words[theme.choice];
      node.setAttribute("aria-label", node.title);
    },
    { class: "theme" },
  );
  return node;
}
