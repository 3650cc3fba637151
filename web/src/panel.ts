// SPDX-License-Identifier: MIT OR Apache-2.0
// One plot. uPlot lays out axes and scales; trace.ts draws the samples of each series at their own times.

import uPlot from "uplot";
import type { Columns } from "./arrays";
import type { Axis, Panel, Series } from "./data";
import { ends, linearEnds, logEnds, named, short, tiltOf } from "./ends";
import { button, el } from "./dom";
import { logTicks, quantity, ticks } from "./format";
import { listen } from "./gestures";
import { stripHeight, stripRow } from "./strip";
import { legend, type Legend } from "./legend";
import type { Link, Member, Selection } from "./link";
import { extent, nearest, pick, tidy, type Samples } from "./samples";
import type { Theme } from "./theme";
import { bars, heat, intervals, outline, sign, squares } from "./shapes";
import { band, box, line, points, step, type View } from "./trace";

export interface Loaded {
  series: Series;
  /** The columns of an outline and a heat map, as they are: their order is their shape. */
  samples: Samples;
  z: Float64Array | null;
  low: Float64Array | null;
  high: Float64Array | null;
  lost: Float64Array;
}

const AXIS_WIDTH = 56; // the same for all panels, so that their times are aligned
const FAINT = 0.13; // opacity of series that are not highlighted
const DRAW = { line, step, box }; // a narrow box stands in a violin
const SHAPES: ReadonlySet<string> = new Set(["outline", "heat"]);
const INTERVALS: ReadonlySet<string> = new Set(["points", "bar"]); // low and high are drawn as the ends of a line
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
  private readonly logs: { x: boolean; y: boolean };
  private ready = false;
  private readonly resized = new ResizeObserver(() => this.fit());
  private readonly forget: () => void;

  constructor(
    public panel: Panel,
    private columns: Columns,
    private readonly link: Link,
    private readonly selection: Selection,
    private readonly theme: Theme,
    level: 3 | 4 = 3,
  ) {
    this.logs = { x: panel.x.scale === "log", y: panel.y.scale === "log" };
    this.dots = panel.series.map(() => el("i", { class: "dot", hidden: true }));
    const pressed = { "aria-pressed": this.logs[panel.log] };
    this.logButton = button("log", "Log scale", () => this.toggleLog(), pressed);
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
    const unit = named(panel.y);
    this.holder.setAttribute(
      "aria-label",
      `${panel.title}: ${unit} against ${panel.x.label}${panel.x.unit ? ` (${panel.x.unit})` : ""}. ` +
        "Arrow keys move the cursor; with Shift they move the view. Plus and minus zoom; 0 shows all.",
    );
    this.root = el(
      "figure",
      { class: "panel", "data-panel": panel.key },
      el("figcaption", {}, heading, zoomButtons),
      el("div", { class: "unit" }, el("span", {}, unit), this.readout, panel.y2 && el("span", {}, named(panel.y2))),
      this.holder,
      // The places on the x axis have the names of their series.
      panel.x.names.length === 0 && panel.legend && this.legend.root,
      panel.rows.length > 0 &&
        el("p", { class: "note" }, "Above the plot: \u00d7 lost probe, \u2228 drop, \u2227 mark, + retransmit."),
      ...panel.notes.map((note) => el("p", { class: "note" }, note)),
    );
    for (const band of panel.bands) link.cover(band.from, band.to);
    link.join(this);
    selection.onChange(() => this.showSeries());
    this.forget = theme.onChange(() => this.plot?.redraw(false, true));
  }

  /** Decode the samples. All panels do this before the first one is drawn, because they share their range. */
  load(): void {
    this.decode();
    const { names, zero, least, most } = this.panel.x;
    for (const { samples, series } of this.loaded) {
      if (series.style === "outline") this.link.cover(...ends(samples.x));
      else if (samples.x.length > 0) this.link.cover(samples.x[0] as number, samples.x[samples.x.length - 1] as number);
    }
    if (names.length > 0) this.link.cover(-0.6, names.length - 0.4);
    else {
      if (zero && !this.logX) this.link.cover(0, 0);
      if (!this.logX || (least ?? 1) > 0) this.link.bound(least, most);
    }
  }

  /** Other samples of the same series: those of another part of the time, or more of a run that is being recorded. */
  update(panel: Panel, columns: Columns): void {
    this.panel = panel;
    this.columns = columns;
    this.load();
    this.showSeries();
  }

  draw(): void {
    if (this.ready) return;
    this.ready = true;
    this.build();
    this.root.dataset.drawn = performance.now().toFixed(0);
    this.resized.observe(this.holder);
    listen({
      holder: this.holder,
      link: this.link,
      plot: () => this.plot,
      toggleLog: () => this.toggleLog(),
      readAloud: () => this.readout.setAttribute("aria-live", "polite"),
    });
  }

  /** Before the element is removed and not used again. */
  close(): void {
    this.forget();
    this.resized.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  showRange(from: number, to: number): void {
    this.plot?.setScale("x", { min: from, max: to });
    this.root.dataset.from = String(from);
    this.root.dataset.to = String(to);
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
        inside && this.visible(one.series) && !SHAPES.has(one.series.style)
          ? nearest(one.samples, x, one.series.style === "step", reach)
          : null;
      dot.hidden = at === null || one.series.style === "step";
      if (at === null) return null;
      const value = one.samples.y[at] as number;
      if (!dot.hidden) {
        const top = plot.valToPos(value, this.scale(one.series));
        dot.hidden = !(top >= 0 && top <= plot.over.clientHeight);
        dot.style.transform = `translate(${plot.valToPos(one.samples.x[at] as number, "x")}px, ${top}px)`;
        dot.style.background = this.color(one.series);
      }
      return quantity(value, this.axis(one.series).unit);
    });
    this.legend.values(inside ? values : null);
    if (this.panel.x.names.length > 0) {
      this.readout.textContent = inside ? this.atPlace(Math.round(x)) : "";
      return;
    }
    this.readout.textContent = inside ? `${this.panel.x.label} ${quantity(x, this.panel.x.unit)}` : "";
  }

  /** The name of a place, and the values of the series there; of a box its median. */
  private atPlace(place: number): string {
    const values = this.loaded
      .filter(({ series, samples }) => !SHAPES.has(series.style) && Math.abs((samples.x[0] ?? NaN) - place) < 0.5)
      .map(
        ({ series, samples }) =>
          quantity(samples.y[series.style === "box" ? 2 : 0], this.axis(series).unit) +
          (samples.x.length > 1 && series.style === "points" ? " \u2026" : ""),
      );
    return `${this.panel.x.names[place] ?? ""}: ${values.slice(0, 4).join(", ")}`;
  }

  private decode(): void {
    this.loaded = this.panel.series.map((series) => {
      const x = this.columns.get(series.x);
      const y = this.columns.get(series.y);
      const samples = SHAPES.has(series.style) ? { x, y, order: null } : tidy(x, y, this.logY, this.logX);
      return {
        series,
        samples,
        z: series.z === null ? null : this.columns.get(series.z),
        low: series.low === null ? null : pick(this.columns.get(series.low), samples.order),
        high: series.high === null ? null : pick(this.columns.get(series.high), samples.order),
        lost: series.lost === null ? new Float64Array(0) : this.columns.get(series.lost),
      };
    });
  }

  private axis(series: Series): Axis {
    return series.axis === 2 && this.panel.y2 ? this.panel.y2 : this.panel.y;
  }

  private scale(series: Series): "y" | "y2" {
    return series.axis === 2 && this.panel.y2 ? "y2" : "y";
  }

  private visible(series: Series): boolean {
    return !this.selection.hidden.has(series.key);
  }

  private color(series: Series): string {
    return this.theme.ink.series[series.color] ?? this.theme.ink.text;
  }

  private get logY(): boolean {
    return this.logs.y;
  }

  private get logX(): boolean {
    return this.logs.x;
  }

  private get height(): number {
    return (
      (innerWidth < 640 ? 220 : 260) +
      stripHeight(this.lossRows) +
      tiltOf(this.panel.x.names, this.holder.clientWidth - AXIS_WIDTH).height
    );
  }

  /** Rows of the strip: all series with lost probes, also hidden ones, so that the plot does not move. */
  private get lossRows(): number {
    return this.loaded.filter((one) => one.lost.length > 0).length + this.panel.rows.length;
  }

  private toggleLog(): void {
    const axis = this.panel.log;
    this.logs[axis] = !this.logs[axis];
    this.logButton.setAttribute("aria-pressed", String(this.logs[axis]));
    // A logarithmic axis has no place for values of zero and below, so its range may differ.
    if (this.panel.log === "x") this.link.whole = [Infinity, -Infinity];
    this.load();
    if (this.panel.log === "x") this.link.reset();
    this.plot?.destroy();
    this.build();
    this.showCursor(this.link.cursor);
  }

  private rangeOfY(scale: "y" | "y2", from: number, to: number): [number, number] {
    const axis = scale === "y2" && this.panel.y2 ? this.panel.y2 : this.panel.y;
    let low = Infinity;
    let high = -Infinity;
    for (const one of this.loaded) {
      if (!this.visible(one.series) || this.scale(one.series) !== scale) continue;
      const found: [number, number][] = [];
      if (SHAPES.has(one.series.style)) found.push(ends(one.samples.y));
      else {
        const inside = extent(one.samples, from, to);
        if (inside) found.push(inside);
      }
      if (one.series.style === "bar" && !this.logY) found.push([0, 0]);
      if (INTERVALS.has(one.series.style)) for (const side of [one.low, one.high]) if (side) found.push(ends(side));
      for (const [a, b] of found) {
        if (!this.logY || a > 0) low = Math.min(low, a);
        if (!this.logY || b > 0) high = Math.max(high, b);
      }
    }
    if (!(low <= high)) return this.logY ? [0.1, 10] : [0, 1];
    const [bottom, top] = this.logY ? logEnds(low, high) : linearEnds(low, high, axis.zero);
    // The bounds are those of the scale that the axis has at first.
    if (this.link.zoomed || this.logY !== (axis.scale === "log")) return [bottom, top];
    const [least, most] = [axis.least ?? bottom, axis.most ?? top];
    return least < most && (least > 0 || !this.logY) ? [least, most] : [bottom, top];
  }

  private build(): void {
    const { panel, theme } = this;
    const [from, to] = this.link.range;
    const font = "12px system-ui, sans-serif";
    const tilt = tiltOf(panel.x.names, this.holder.clientWidth - AXIS_WIDTH);
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
          range: (plot) => this.rangeOfY("y", plot.scales.x?.min ?? from, plot.scales.x?.max ?? to),
        },
        ...(panel.y2
          ? {
              y2: {
                distr: this.logY ? 3 : 1,
                range: (plot: uPlot) => this.rangeOfY("y2", plot.scales.x?.min ?? from, plot.scales.x?.max ?? to),
              } satisfies uPlot.Scale,
            }
          : {}),
      },
      axes: [
        {
          ...axis,
          size: 26 + tilt.height,
          space: 52,
          ...(tilt.height > 0 ? { rotate: 35, align: 2 as const } : {}),
          label: panel.x.unit ? `${panel.x.label} (${panel.x.unit})` : panel.x.label,
          labelFont: font,
          labelSize: 18,
          labelGap: 0,
          ...(panel.x.names.length > 0 ? { splits: () => panel.x.names.map((_, i) => i) } : {}),
          values: (_plot, values, _axis, _space, incr) =>
            panel.x.names.length > 0
              ? values.map((at) => short(panel.x.names[at] ?? "", tilt.letters))
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
        ...(panel.y2
          ? [
              {
                ...axis,
                scale: "y2",
                side: 1 as const,
                size: AXIS_WIDTH,
                space: 34,
                grid: { show: false },
                values: (_plot: uPlot, values: number[], _axis: number, _space: number, incr: number) =>
                  this.logY ? logTicks(values) : ticks(values, incr),
              },
            ]
          : []),
      ],
      // uPlot gets two points and does not draw them; paint() draws the samples.
      series: [
        {},
        { paths: () => null, points: { show: false } },
        ...(panel.y2 ? [{ scale: "y2", paths: () => null, points: { show: false } }] : []),
      ],
      hooks: {
        drawAxes: [(plot) => this.shade(plot)],
        draw: [(plot) => this.paint(plot)],
        setSelect: [(plot) => this.selected(plot)],
        setCursor: [(plot) => this.pointed(plot)],
      },
    };
    this.plot = new uPlot(
      options,
      [[from, to], [0, 0], ...(panel.y2 ? [[0, 0] as [number, number]] : [])],
      this.holder,
    );
    this.showRange(from, to);
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
    const view = (scale: "y" | "y2"): View => ({
      from,
      to,
      px: (x) => plot.valToPos(x, "x", true),
      py: (y) => plot.valToPos(y, scale, true),
    });
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineJoin = "round";
    for (const one of this.loaded) {
      const { series } = one;
      if (!this.visible(series)) continue;
      const color = this.color(series);
      const away = this.selection.highlighted !== null && this.selection.highlighted !== series.key;
      ctx.globalAlpha = away ? FAINT : 1;
      ctx.strokeStyle = color;
      ctx.fillStyle = color;
      ctx.lineWidth = series.width * ratio * (this.selection.highlighted === series.key ? 1.6 : 1);
      ctx.setLineDash(series.dash.map((length) => length * ratio));
      this.trace(ctx, one, view(this.scale(series)), away ? FAINT : 1);
      ctx.setLineDash([]);
    }
    ctx.restore();
    if (this.lossRows > 0) this.losses(plot, view("y"));
  }

  private trace(ctx: CanvasRenderingContext2D, one: Loaded, view: View, alpha: number): void {
    const { series, samples } = one;
    const ratio = uPlot.pxRatio;
    if (one.low && one.high && !INTERVALS.has(series.style)) {
      ctx.globalAlpha = alpha * 0.18;
      band(samples.x, one.low, one.high, series.style === "step", view, (shape) => {
        ctx.beginPath();
        for (const [x, y] of shape) ctx.lineTo(x, y);
        ctx.closePath();
        ctx.fill();
      });
      ctx.globalAlpha = alpha;
    }
    switch (series.style) {
      case "heat":
        heat(ctx, samples.x, samples.y, one.z ?? new Float64Array(0), view, alpha);
        break;
      case "outline":
        outline(ctx, samples, view, alpha);
        break;
      case "bar":
        bars(ctx, samples, view, alpha);
        break;
      case "points": {
        const size = Math.max(1, series.width * ratio);
        ctx.beginPath();
        points(samples, view, size, (x, y) => ctx.rect(x - size / 2, y - size / 2, size, size));
        ctx.fill();
        break;
      }
      default:
        ctx.beginPath();
        DRAW[series.style](samples, view, ctx, series.width < 1 ? 0.06 : 0.25);
        ctx.stroke();
    }
    if (one.low && one.high && INTERVALS.has(series.style)) {
      if (series.style === "bar") ctx.strokeStyle = this.theme.ink.text;
      intervals(ctx, samples.x, one.low, one.high, view, 5 * ratio);
    }
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
    const words = [
      ...new Set([...(rows > this.panel.rows.length ? ["lost"] : []), ...this.panel.rows.map((one) => one.kind)]),
    ];
    ctx.fillText(words.length === 1 ? (words[0] ?? "") : "events", bbox.left - 6 * ratio, bbox.top - height / 2);
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - height, bbox.width, height);
    ctx.clip();
    for (const { series, lost } of this.loaded) {
      if (lost.length === 0) continue;
      const { above, size } = stripRow(row++, rows);
      if (!this.visible(series)) continue;
      ctx.globalAlpha = this.selection.highlighted !== null && this.selection.highlighted !== series.key ? FAINT : 1;
      ctx.strokeStyle = this.color(series);
      sign(ctx, "lost", lost, view, bbox.top - above * ratio, size * ratio);
    }
    ctx.globalAlpha = 1;
    for (const { kind, color, x } of this.panel.rows) {
      const { above, size } = stripRow(row++, rows);
      ctx.strokeStyle = this.theme.ink.series[color] ?? this.theme.ink.text;
      sign(ctx, kind, this.columns.get(x), view, bbox.top - above * ratio, size * ratio);
    }
    ctx.restore();
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

  /** Save the samples in view as CSV, one row for each. */
  private save(): void {
    const [from, to] = this.link.range;
    const quote = (text: string): string =>
      `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const number = (value = NaN): string => (Number.isNaN(value) ? "" : `${value}`);
    const { title, x } = this.panel;
    const rows = ["panel,series,x,x unit,y,y unit,low,high,share"]; // as of `ktrxer plot -o NAME.csv`
    for (const { series, samples, low, high, z } of this.loaded) {
      if (!this.visible(series)) continue;
      const head = [quote(title), quote(series.label)];
      const units = [quote(x.unit), quote(this.axis(series).unit)] as const;
      const add = (at: number, y: number | undefined, ...rest: (number | undefined)[]): void => {
        if (at < from || at > to) return;
        rows.push([...head, at, units[0], number(y), units[1], ...rest.map(number)].join(","));
      };
      if (z) squares(samples, z, (at, y, share) => add(at, y, undefined, undefined, share));
      else samples.x.forEach((at, i) => add(at, samples.y[i], low?.[i], high?.[i], undefined));
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
