// SPDX-License-Identifier: MIT OR Apache-2.0
// The legend has a button for each series. A click hides or shows the series in all plots; a double click or a click
// with Shift shows only that series. Hovering or focusing highlights it. The legend shows the values at the cursor.

import type { Series } from "./data";
import { el } from "./dom";
import type { Selection } from "./link";

export interface Legend {
  root: HTMLElement;
  update(): void;
  values(values: (string | null)[] | null): void;
}

const SVG = "http://www.w3.org/2000/svg";

/** A sample of the line with its colour and dash, because colour alone must not identify a series. */
function swatch(series: Series): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `swatch c${series.color}`);
  svg.setAttribute("viewBox", "0 0 22 10");
  svg.setAttribute("aria-hidden", "true");
  if (series.style === "points") {
    for (const [x, y] of [
      [4, 6],
      [11, 3],
      [18, 7],
    ] as const) {
      const dot = document.createElementNS(SVG, "rect");
      for (const [name, value] of Object.entries({ x: x - 1.5, y: y - 1.5, width: 3, height: 3 }))
        dot.setAttribute(name, String(value));
      svg.append(dot);
    }
  } else {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", "M0 5H22");
    path.setAttribute("stroke-width", String(Math.max(2, series.width * 1.5)));
    if (series.dash.length > 0) path.setAttribute("stroke-dasharray", series.dash.join(" "));
    svg.append(path);
  }
  return svg;
}

export function legend(series: readonly Series[], selection: Selection): Legend {
  const keys = series.map((one) => one.key);
  // A series without a name belongs to the one before it, as the mean of points does. One key has one button.
  const named = series.filter((one, i) => one.label !== "" && keys.indexOf(one.key) === i);
  const buttons = named.map((one) => {
    const value = el("span", { class: "value" });
    const node = el(
      "button",
      { type: "button", title: one.hint || one.label, "data-key": one.key },
      swatch(one),
      el("span", { class: "name" }, one.label),
      value,
    );
    let clicked = 0;
    node.addEventListener("click", (event) => {
      // The second click of a double click shows the series that the first one has hidden, and hides the others.
      if (event.shiftKey) selection.only(one.key, keys);
      else if (event.timeStamp - clicked < 350) {
        selection.hidden.delete(one.key);
        selection.only(one.key, keys);
      } else selection.toggle(one.key);
      clicked = event.timeStamp;
    });
    node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && selection.highlight(one.key));
    node.addEventListener("pointerleave", () => selection.highlight(null));
    node.addEventListener("focus", () => node.matches(":focus-visible") && selection.highlight(one.key));
    node.addEventListener("blur", () => selection.highlight(null));
    return { node, value, key: one.key };
  });
  const root = el(
    "div",
    { class: "legend", role: "group", "aria-label": "Series: click to hide or show" },
    ...buttons.map(({ node }) => node),
  );
  const update = (): void => {
    for (const { node, key } of buttons) node.setAttribute("aria-pressed", String(!selection.hidden.has(key)));
  };
  update();
  return {
    root,
    update,
    values(values) {
      buttons.forEach(({ value, key }) => {
        value.textContent = values ? (values[keys.indexOf(key)] ?? "\u2013") : "";
      });
      root.classList.toggle("reading", values !== null);
    },
  };
}
