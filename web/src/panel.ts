// SPDX-License-Identifier: MIT OR Apache-2.0
// One plot. uPlot lays out axes and scales; trace.ts draws the samples of each series at their own times.

import uPlot from "uplot";
import type { Columns } from "./arrays";
import type { Panel, Series } from "./data";
import { button, el } from "./dom";
import { quantity, ticks } from "./format";
import { stripHeight, stripRow } from "./strip";
import { legend, type Legend } from "./legend";
import type { Link, Member, Selection } from "./link";
import { extent, nearest, pick, tidy, type Samples } from "./samples";
import type { Theme } from "./theme";
import { band, box, line, points, step, type View } from "./trace";

export interface Loaded {
  series: Series;
  samples: Samples;
  low: Float64Array | null;
  high: Float64Array | null;
  lost: Float64Array;
}

const AXIS_WIDTH = 56; // the same for all panels, so that their times are aligned
const FAINT = 0.13; // opacity of series that are not highlighted
const DRAW = { line, step, box };
const REACH_PIXELS = 24; // the cursor reads samples up to this distance

export class PanelView implements Member {
  readonly root: HTMLElement;
  private readonly holder = el("div", { class: "plot", tabindex: 0, role: "group" });
  private readonly readout = el("output", { class: "readout", "aria-live": "off" });
  private readonly dots: HTMLElement[];
  private readonly legend: Legend;
  private readonly logButton: HTMLButtonElement;
  private loaded: Loaded[] = [];
  private plot: uPlot | null = null;
  private log: boolean;
  private ready = false;

  constructor(
    readonly panel: Panel,
    private readonly columns: Columns,
    private readonly link: Link,
    private readonly selection: Selection,
    private readonly theme: Theme,
    level: 3 | 4 = 3,
  ) {
    this.log = panel[panel.log].scale === "log";
    this.dots = panel.series.map(() => el("i", { class: "dot", hidden: true }));
    this.logButton = button("log", "Logarithmic scale", () => this.setLog(!this.log), { "aria-pressed": this.log });
    const zoomButtons = el(
      "div",
      { class: "tools", role: "toolbar", "aria-label": `${panel.title}: view` },
      button("\u2212", "Zoom out", () => link.zoom(2, link.cursor ?? undefined)),
      button("+", "Zoom in", () => link.zoom(0.5, link.cursor ?? undefined)),
      button("\u25c2", "Earlier", () => link.pan(-0.5)),
      button("\u25b8", "Later", () => link.pan(0.5)),
      button("all", "Show all", () => link.reset()),
      this.logButton,
      button("csv", "Save the samples in view as CSV", () => this.save()),
    );
    const heading = el(level === 3 ? "h3" : "h4", {}, panel.title);
    this.legend = legend(panel.series, selection);
    const unit = panel.y.unit ? `${panel.y.label} (${panel.y.unit})` : panel.y.label;
    this.holder.setAttribute(
      "aria-label",
      `${panel.title}: ${unit} against ${panel.x.label}${panel.x.unit ? ` (${panel.x.unit})` : ""}. ` +
        "Arrow keys move the cursor; with Shift they move the view. Plus and minus zoom; 0 shows all.",
    );
    this.root = el(
      "figure",
      { class: "panel", "data-panel": panel.key },
      el("figcaption", {}, heading, zoomButtons),
      el("div", { class: "unit" }, el("span", {}, unit), this.readout),
      this.holder,
      this.legend.root,
      ...panel.notes.map((note) => el("p", { class: "note" }, note)),
    );
    for (const band of panel.bands) link.cover(band.from, band.to);
    link.join(this);
    selection.onChange(() => this.showSeries());
    theme.onChange(() => this.plot?.redraw(false, true));
  }

  /** Decode the samples. All panels do this before the first one is drawn, because they share their range. */
  load(): void {
    this.decode();
    const { names, zero } = this.panel.x;
    for (const { samples } of this.loaded) {
      if (samples.x.length > 0) this.link.cover(samples.x[0] as number, samples.x[samples.x.length - 1] as number);
    }
    if (names.length > 0) this.link.cover(-0.6, names.length - 0.4);
    else if (zero && !this.logX) this.link.cover(0, 0);
  }

  draw(): void {
    if (this.ready) return;
    this.ready = true;
    this.build();
    this.root.dataset.drawn = performance.now().toFixed(0);
    new ResizeObserver(() => this.fit()).observe(this.holder);
    this.listen();
  }

  showRange(from: number, to: number): void {
    this.root.dataset.from = String(from);
    this.root.dataset.to = String(to);
    this.plot?.setScale("x", { min: from, max: to });
  }

  showSeries(): void {
    this.legend.update();
    if (!this.plot) return;
    const [from, to] = this.link.range;
    this.plot.setScale("x", { min: from, max: to }); // y depends on the shown series
    this.plot.redraw(true, true);
    this.showCursor(this.link.cursor);
  }

  showCursor(x: number | null): void {
    const plot = this.plot;
    if (!plot) return;
    const width = plot.over.clientWidth;
    const inside = x !== null && x >= (plot.scales.x?.min ?? NaN) && x <= (plot.scales.x?.max ?? NaN);
    const left = inside ? plot.valToPos(x, "x") : -10;
    if (Math.abs((plot.cursor.left ?? -10) - left) > 0.5) plot.setCursor({ left, top: inside ? 0 : -10 }, false);
    const [from, to] = this.link.range;
    const reach = width > 0 ? ((to - from) * REACH_PIXELS) / width : 0;
    const values: (string | null)[] = this.loaded.map((one, i) => {
      const dot = this.dots[i] as HTMLElement;
      const at =
        inside && this.visible(one.series) ? nearest(one.samples, x, one.series.style === "step", reach) : null;
      dot.hidden = at === null || one.series.style === "step";
      if (at === null) return null;
      const value = one.samples.y[at] as number;
      if (!dot.hidden) {
        const top = plot.valToPos(value, "y");
        dot.hidden = !(top >= 0 && top <= plot.over.clientHeight);
        dot.style.transform = `translate(${plot.valToPos(one.samples.x[at] as number, "x")}px, ${top}px)`;
        dot.style.background = this.color(one.series);
      }
      return quantity(value, this.panel.y.unit);
    });
    this.legend.values(inside ? values : null);
    this.readout.textContent = inside ? `${this.panel.x.label} ${quantity(x, this.panel.x.unit)}` : "";
  }

  private decode(): void {
    this.loaded = this.panel.series.map((series) => {
      const x = this.columns.get(series.x);
      const samples = tidy(x, this.columns.get(series.y), this.logY, this.logX);
      return {
        series,
        samples,
        low: series.low === null ? null : pick(this.columns.get(series.low), samples.order),
        high: series.high === null ? null : pick(this.columns.get(series.high), samples.order),
        lost: series.lost === null ? new Float64Array(0) : this.columns.get(series.lost),
      };
    });
  }

  private visible(series: Series): boolean {
    return !this.selection.hidden.has(series.key);
  }

  private color(series: Series): string {
    return this.theme.ink.series[series.color] ?? this.theme.ink.text;
  }

  private get logY(): boolean {
    return this.panel.log === "y" && this.log;
  }

  private get logX(): boolean {
    return this.panel.log === "x" && this.log;
  }

  private get height(): number {
    return (innerWidth < 640 ? 220 : 260) + stripHeight(this.lossRows);
  }

  /** Rows of the strip: all series with lost probes, also hidden ones, so that the plot does not move. */
  private get lossRows(): number {
    return this.loaded.filter((one) => one.lost.length > 0).length;
  }

  private setLog(log: boolean): void {
    this.log = log;
    this.logButton.setAttribute("aria-pressed", String(log));
    // A logarithmic axis has no place for values of zero and below, so its range may differ.
    if (this.panel.log === "x") this.link.whole = [Infinity, -Infinity];
    this.load();
    if (this.panel.log === "x") this.link.reset();
    this.plot?.destroy();
    this.build();
    this.showCursor(this.link.cursor);
  }

  private rangeOfY(from: number, to: number): [number, number] {
    let low = Infinity;
    let high = -Infinity;
    for (const one of this.loaded) {
      if (!this.visible(one.series)) continue;
      const found = extent(one.samples, from, to);
      if (!found) continue;
      low = Math.min(low, found[0]);
      high = Math.max(high, found[1]);
    }
    if (!(low <= high)) return this.logY ? [0.1, 10] : [0, 1];
    if (this.logY) {
      const [a, b] = uPlot.rangeLog(low, high * 1.2, 10, false); // keeps samples off the edge
      return [a ?? low, b ?? high];
    }
    if (this.panel.y.zero) {
      low = Math.min(low, 0);
      high = Math.max(high, 0);
    }
    if (low === high) {
      const around = Math.abs(low) || 1;
      return [this.panel.y.zero && low >= 0 ? 0 : low - around / 2, high + around / 2];
    }
    const { most } = this.panel.y;
    if (most !== null && high > most && low < most && !this.link.zoomed)
      return [Math.min(low, this.panel.y.zero ? 0 : low), most];
    const room = (high - low) * 0.06;
    return [this.panel.y.zero && low >= 0 ? 0 : low - room, high + room];
  }

  private build(): void {
    const { panel, theme } = this;
    const [from, to] = this.link.range;
    const font = "12px system-ui, sans-serif";
    const axis = {
      stroke: () => theme.ink.faint,
      grid: { stroke: () => theme.ink.grid, width: 1 },
      ticks: { stroke: () => theme.ink.grid, width: 1, size: 5 },
      font,
      gap: 4,
      filter: (_plot: uPlot, splits: number[]) => splits, // logTicks chooses the labelled ones
    };
    const options: uPlot.Options = {
      width: Math.max(120, this.holder.clientWidth),
      height: this.height,
      padding: [8 + stripHeight(this.lossRows), 12, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => null },
      },
      scales: {
        x: { time: false, auto: false, distr: this.logX ? 3 : 1, range: (_plot, min, max) => [min, max] },
        y: {
          distr: this.logY ? 3 : 1,
          range: (plot) => this.rangeOfY(plot.scales.x?.min ?? from, plot.scales.x?.max ?? to),
        },
      },
      axes: [
        {
          ...axis,
          size: 26,
          space: 52,
          label: panel.x.unit ? `${panel.x.label} (${panel.x.unit})` : panel.x.label,
          labelFont: font,
          labelSize: 18,
          labelGap: 0,
          ...(panel.x.names.length > 0 ? { splits: () => panel.x.names.map((_, i) => i) } : {}),
          values: (_plot, values, _axis, _space, incr) =>
            panel.x.names.length > 0
              ? values.map((at) => panel.x.names[at] ?? null)
              : this.logX
                ? logTicks(values)
                : ticks(values, incr),
        },
        {
          ...axis,
          size: AXIS_WIDTH,
          space: 34,
          values: (_plot, values, _axis, _space, incr) => (this.logY ? logTicks(values) : ticks(values, incr)),
        },
      ],
      // uPlot gets two points and does not draw them; paint() draws the samples.
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        drawAxes: [(plot) => this.shade(plot)],
        draw: [(plot) => this.paint(plot)],
        setSelect: [(plot) => this.selected(plot)],
        setCursor: [(plot) => this.pointed(plot)],
      },
    };
    this.plot = new uPlot(
      options,
      [
        [from, to],
        [0, 0],
      ],
      this.holder,
    );
    this.plot.setScale("x", { min: from, max: to });
    this.plot.over.append(...this.dots);
  }

  /** The phases, drawn behind the samples. */
  private shade(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const phase of this.panel.bands) {
      const left = plot.valToPos(phase.from, "x", true);
      const right = plot.valToPos(phase.to, "x", true);
      if (phase.kind === "load") {
        ctx.fillStyle = this.theme.ink.load;
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
      const shown = Math.min(right, bbox.left + bbox.width) - Math.max(left, bbox.left);
      ctx.font = `${11 * uPlot.pxRatio}px system-ui, sans-serif`;
      ctx.fillStyle = this.theme.ink.faint;
      ctx.textBaseline = "top";
      ctx.textAlign = "left";
      if (ctx.measureText(phase.label).width + 8 * uPlot.pxRatio < shown) {
        ctx.fillText(phase.label, Math.max(left, bbox.left) + 4 * uPlot.pxRatio, bbox.top + 3 * uPlot.pxRatio);
      }
    }
    ctx.restore();
  }

  private paint(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    const [from, to] = this.link.range;
    const view: View = { from, to, px: (x) => plot.valToPos(x, "x", true), py: (y) => plot.valToPos(y, "y", true) };
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineJoin = "round";
    for (const one of this.loaded) {
      const { series, samples } = one;
      if (!this.visible(series)) continue;
      const color = this.color(series);
      const away = this.selection.highlighted !== null && this.selection.highlighted !== series.key;
      ctx.globalAlpha = away ? FAINT : 1;
      ctx.strokeStyle = color;
      ctx.fillStyle = color;
      ctx.lineWidth = series.width * ratio * (this.selection.highlighted === series.key ? 1.6 : 1);
      ctx.setLineDash(series.dash.map((length) => length * ratio));
      if (one.low && one.high) {
        ctx.globalAlpha *= 0.18;
        band(samples.x, one.low, one.high, series.style === "step", view, (shape) => {
          ctx.beginPath();
          for (const [x, y] of shape) ctx.lineTo(x, y);
          ctx.closePath();
          ctx.fill();
        });
        ctx.globalAlpha = away ? FAINT : 1;
      }
      ctx.beginPath();
      if (series.style === "points") {
        const size = Math.max(1, series.width * ratio);
        points(samples, view, size, (x, y) => ctx.rect(x - size / 2, y - size / 2, size, size));
        ctx.fill();
      } else {
        DRAW[series.style](samples, view, ctx);
        ctx.stroke();
      }
      ctx.setLineDash([]);
    }
    ctx.restore();
    if (this.lossRows > 0) this.losses(plot, view);
  }

  private losses(plot: uPlot, view: View): void {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    const rows = this.lossRows;
    const height = stripHeight(rows) * ratio;
    let row = 0;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = this.theme.ink.faint;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    ctx.fillText("lost", bbox.left - 6 * ratio, bbox.top - height / 2);
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - height, bbox.width, height);
    ctx.clip();
    for (const { series, lost } of this.loaded) {
      if (lost.length === 0) continue;
      const { above, size } = stripRow(row++, rows);
      if (!this.visible(series)) continue;
      ctx.globalAlpha = this.selection.highlighted !== null && this.selection.highlighted !== series.key ? FAINT : 1;
      ctx.strokeStyle = this.color(series);
      this.crosses(ctx, lost, view, bbox.top - above * ratio, size * ratio);
    }
    ctx.restore();
  }

  private crosses(ctx: CanvasRenderingContext2D, lost: Float64Array, view: View, y: number, size: number): void {
    ctx.lineWidth = size * 0.5;
    ctx.beginPath();
    let last = NaN;
    for (const at of lost) {
      if (!(at >= view.from && at <= view.to)) continue;
      const x = Math.round(view.px(at));
      if (x === last) continue;
      last = x;
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x - size, y + size);
      ctx.lineTo(x + size, y - size);
    }
    ctx.stroke();
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width > 3) this.link.show(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  private pointed(plot: uPlot): void {
    const left = plot.cursor.left ?? -10;
    this.link.point(left < 0 ? null : plot.posToVal(left, "x"));
  }

  private fit(): void {
    const width = this.holder.clientWidth;
    if (this.plot && width > 0 && (width !== this.plot.width || this.height !== this.plot.height)) {
      this.plot.setSize({ width, height: this.height });
      this.showCursor(this.link.cursor);
    }
  }

  private listen(): void {
    const { holder, link } = this;
    holder.addEventListener("dblclick", () => link.reset());
    holder.addEventListener("blur", () => link.point(null));
    holder.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
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
          this.setLog(!this.log);
          break;
        case "Escape":
          link.point(null);
          break;
        default:
          return;
      }
      event.preventDefault();
      // A screen reader reads the values only after a key, not after pointer moves.
      this.readout.setAttribute("aria-live", "polite");
    });
    // The wheel scrolls the page; with Ctrl or Shift it zooms the plot. A browser reports a pinch on a trackpad as a
    // wheel event with Ctrl.
    holder.addEventListener(
      "wheel",
      (event) => {
        if (!(event.ctrlKey || event.shiftKey) || !this.plot) return;
        event.preventDefault();
        const turn = event.deltaY || event.deltaX;
        const left = event.clientX - this.plot.over.getBoundingClientRect().left;
        link.zoom(Math.exp(Math.sign(turn) * Math.min(1, Math.abs(turn) / 200)), this.plot.posToVal(left, "x"));
      },
      { passive: false },
    );
    this.touch();
  }

  /** One finger moves the cursor (vertically it scrolls the page), two zoom and pan. */
  private touch(): void {
    const { holder, link } = this;
    let pinch: { distance: number; from: number; to: number; centre: number } | null = null;
    const where = (event: TouchEvent, i: number): number => {
      const over = this.plot?.over.getBoundingClientRect();
      return (event.touches[i]?.clientX ?? 0) - (over?.left ?? 0);
    };
    const start = (event: TouchEvent): void => {
      const plot = this.plot;
      if (!plot) return;
      if (event.touches.length === 2) {
        const [a, b] = [where(event, 0), where(event, 1)];
        const [from, to] = link.range;
        pinch = { distance: Math.max(10, Math.abs(a - b)), from, to, centre: plot.posToVal((a + b) / 2, "x") };
        event.preventDefault();
      } else if (event.touches.length === 1) link.point(plot.posToVal(where(event, 0), "x"));
    };
    const move = (event: TouchEvent): void => {
      const plot = this.plot;
      if (!plot) return;
      if (pinch && event.touches.length === 2) {
        event.preventDefault();
        const [a, b] = [where(event, 0), where(event, 1)];
        const span = ((pinch.to - pinch.from) * pinch.distance) / Math.max(10, Math.abs(a - b));
        // The range between the fingers stays between them.
        const share = (a + b) / 2 / Math.max(1, plot.over.clientWidth);
        link.show(pinch.centre - span * share, pinch.centre + span * (1 - share));
      } else if (event.touches.length === 1) link.point(plot.posToVal(where(event, 0), "x"));
    };
    holder.addEventListener("touchstart", start, { passive: false });
    holder.addEventListener("touchmove", move, { passive: false });
    holder.addEventListener("touchend", (event) => {
      if (event.touches.length < 2) pinch = null;
    });
  }

  /** Save the samples in view as CSV, one row for each. */
  private save(): void {
    const [from, to] = this.link.range;
    const quote = (text: string): string =>
      `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const { x, y } = this.panel;
    const rows = [[quote("series"), quote(`${x.label} (${x.unit})`), quote(`${y.label} (${y.unit})`)].join(",")];
    for (const { series, samples } of this.loaded) {
      if (!this.visible(series)) continue;
      samples.x.forEach((at, i) => {
        if (at >= from && at <= to)
          rows.push(`${quote(series.label)},${at},${Number.isNaN(samples.y[i]) ? "" : samples.y[i]}`);
      });
    }
    const address = URL.createObjectURL(new Blob([rows.join("\n"), "\n"], { type: "text/csv" }));
    const name = this.panel.key.replace(/[^a-z0-9_-]+/gi, "-").slice(0, 60) || "samples";
    const anchor = el("a", { href: address, download: `${name}.csv` });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}

/** Label decades, and also 2 and 5 if there are at most two decades. */
function logTicks(values: readonly (number | null)[]): (string | null)[] {
  const known = values.filter((value) => value !== null);
  const decades = Math.log10((known[known.length - 1] ?? 1) / (known[0] ?? 1));
  const digits = decades <= 2 ? [1, 2, 5] : [1];
  return values.map((value) => {
    if (value === null) return null;
    const first = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    if (!digits.some((digit) => Math.abs(first - digit) < 1e-6)) return null;
    return value >= 1e5 || value < 1e-4
      ? value.toExponential(0)
      : value.toLocaleString("en-US", { maximumSignificantDigits: 2 });
  });
}
