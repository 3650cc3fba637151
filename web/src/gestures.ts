// SPDX-License-Identifier: MIT OR Apache-2.0
// Keys, wheel and fingers on a plot.

import type uPlot from "uplot";
import type { Link } from "./link";

export interface Gestures {
  readonly holder: HTMLElement;
  readonly link: Link;
  plot(): uPlot | null;
  toggleLog(): void;
  /** After a key, a screen reader reads the values at the cursor. */
  readAloud(): void;
}

export function listen(view: Gestures): void {
  const { holder, link } = view;
  holder.addEventListener("dblclick", () => link.reset());
  holder.addEventListener("blur", () => link.point(null));
  holder.addEventListener("keydown", (event) => key(view, event));
  // The wheel scrolls the page; with Ctrl or Shift it zooms the plot. A browser reports a pinch on a trackpad as a
  // wheel event with Ctrl.
  holder.addEventListener(
    "wheel",
    (event) => {
      const plot = view.plot();
      if (!(event.ctrlKey || event.shiftKey) || !plot) return;
      event.preventDefault();
      const turn = event.deltaY || event.deltaX;
      const left = event.clientX - plot.over.getBoundingClientRect().left;
      link.zoom(Math.exp(Math.sign(turn) * Math.min(1, Math.abs(turn) / 200)), plot.posToVal(left, "x"));
    },
    { passive: false },
  );
  touch(view);
}

function key(view: Gestures, event: KeyboardEvent): void {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const { link } = view;
  const [from, to] = link.range;
  const stride = (to - from) / 100;
  const at = link.cursor ?? (from + to) / 2;
  const move = (x: number): void => link.point(Math.min(to, Math.max(from, x)));
  switch (event.key) {
    case "ArrowLeft":
    case "ArrowRight": {
      const sign = event.key === "ArrowLeft" ? -1 : 1;
      if (event.shiftKey) link.pan(0.2 * sign);
      else move(at + sign * stride);
      break;
    }
    case "Home":
      move(from);
      break;
    case "End":
      move(to);
      break;
    case "+":
    case "=":
      link.zoom(0.5, link.cursor ?? undefined);
      break;
    case "-":
      link.zoom(2, link.cursor ?? undefined);
      break;
    case "0":
      link.reset();
      break;
    case "l":
      view.toggleLog();
      break;
    case "Escape":
      link.point(null);
      break;
    default:
      return;
  }
  event.preventDefault();
  view.readAloud();
}

/** One finger moves the cursor (vertically it scrolls the page), two zoom and pan. */
function touch(view: Gestures): void {
  const { holder, link } = view;
  let pinch: { distance: number; from: number; to: number; centre: number } | null = null;
  const where = (plot: uPlot, event: TouchEvent, i: number): number =>
    (event.touches[i]?.clientX ?? 0) - plot.over.getBoundingClientRect().left;
  const start = (event: TouchEvent): void => {
    const plot = view.plot();
    if (!plot) return;
    if (event.touches.length === 2) {
      const [a, b] = [where(plot, event, 0), where(plot, event, 1)];
      const [from, to] = link.range;
      pinch = { distance: Math.max(10, Math.abs(a - b)), from, to, centre: plot.posToVal((a + b) / 2, "x") };
      event.preventDefault();
    } else if (event.touches.length === 1) link.point(plot.posToVal(where(plot, event, 0), "x"));
  };
  const move = (event: TouchEvent): void => {
    const plot = view.plot();
    if (!plot) return;
    if (pinch && event.touches.length === 2) {
      event.preventDefault();
      const [a, b] = [where(plot, event, 0), where(plot, event, 1)];
      const span = ((pinch.to - pinch.from) * pinch.distance) / Math.max(10, Math.abs(a - b));
      // The range between the fingers stays between them.
      const share = (a + b) / 2 / Math.max(1, plot.over.clientWidth);
      link.show(pinch.centre - span * share, pinch.centre + span * (1 - share));
    } else if (event.touches.length === 1) link.point(plot.posToVal(where(plot, event, 0), "x"));
  };
  holder.addEventListener("touchstart", start, { passive: false });
  holder.addEventListener("touchmove", move, { passive: false });
  holder.addEventListener("touchend", (event) => {
    if (event.touches.length < 2) pinch = null;
  });
}
