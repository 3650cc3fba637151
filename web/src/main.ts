// SPDX-License-Identifier: MIT OR Apache-2.0
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Columns } from "./arrays";
import { DataError, parse } from "./data";
import { el, must } from "./dom";
import { Page } from "./page";
import { colourSheet, Theme } from "./theme";

/** Show an error above the static text of the page, which stays. */
function complain(what: string): void {
  document.body.prepend(
    el("div", { class: "damage", role: "alert" }, el("strong", {}, "This report cannot be shown completely. "), what),
  );
}

function start(): void {
  const source = must(document.getElementById("report"), "the data of this report").textContent ?? "";
  const report = parse(source);
  const theme = new Theme(report.palette);
  document.adoptedStyleSheets = [colourSheet(theme, report.palette)];
  const root = must(document.getElementById("root"), "the element #root of this page");
  const stage = el("div", { id: "root" });
  new Page(report, new Columns(report.arrays), theme).render(stage);
  root.replaceWith(stage);
  document.documentElement.dataset.ready = "yes";
}

try {
  start();
} catch (error) {
  complain(error instanceof DataError ? `${error.message}.` : `${String(error)}.`);
  document.documentElement.dataset.ready = "failed";
}
