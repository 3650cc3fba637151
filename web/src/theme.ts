// SPDX-License-Identifier: MIT OR Apache-2.0
// Light, dark and print colours. CSS colours the page; canvases read the colours here and redraw when they change.

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

  constructor(private readonly palette: { light: string[]; dark: string[] }) {
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

  onChange(listener: () => void): void {
    this.listeners.add(listener);
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
