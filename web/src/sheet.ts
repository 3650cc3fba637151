// SPDX-License-Identifier: MIT OR Apache-2.0
// Panels on a page. Each is drawn when it comes near the visible part.

import { PackedError, type Columns } from "./arrays";
import type { Panel } from "./data";
import { el } from "./dom";
import { Link, type Selection } from "./link";
import { PanelView } from "./panel";
import type { Theme } from "./theme";

export class Sheet {
  readonly views: PanelView[] = [];
  readonly links = new Map<string, Link>();
  private readonly watcher: IntersectionObserver | null;

  constructor(
    private readonly columns: Columns,
    private readonly theme: Theme,
  ) {
    this.watcher =
      "IntersectionObserver" in window
        ? new IntersectionObserver((seen) => seen.forEach((one) => one.isIntersecting && this.draw(one.target)), {
            rootMargin: "400px",
          })
        : null;
  }

  /** Panels with the same link share it; it does not reach beyond these panels. */
  panels(panels: readonly Panel[], selection: Selection, level: 3 | 4): HTMLElement[] {
    this.links.clear();
    return panels.map((panel) => {
      // A panel without a link has its own range and cursor.
      const name = panel.link || `alone:${panel.key}`;
      const link = this.links.get(name) ?? new Link();
      this.links.set(name, link);
      const view = new PanelView(panel, this.columns, link, selection, this.theme, level);
      try {
        view.load();
      } catch (error) {
        if (!(error instanceof PackedError)) throw error;
        return el(
          "figure",
          { class: "panel" },
          el("figcaption", {}, el("h3", {}, panel.title)),
          el("p", { class: "damage" }, `Not drawn: ${error.message}.`),
        );
      }
      this.views.push(view);
      if (!panel.folded) return view.root;
      return el(
        "details",
        { class: "more folded" },
        el("summary", {}, el("strong", {}, panel.title), ` ${panel.folded}`),
        view.root,
      );
    });
  }

  /** After the panels are in the document. */
  watch(): void {
    for (const view of this.views) {
      if (this.watcher) this.watcher.observe(view.root);
      else view.draw();
    }
  }

  drawAll(): void {
    this.views.forEach((view) => view.draw());
  }

  close(): void {
    this.watcher?.disconnect();
    this.views.forEach((view) => view.close());
  }

  private draw(root: Element): void {
    this.watcher?.unobserve(root);
    this.views.find((view) => view.root === root)?.draw();
  }
}
