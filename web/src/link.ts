// SPDX-License-Identifier: MIT OR Apache-2.0
// State that panels share: the shown range of the x axis, the cursor, and the hidden and highlighted series.

export interface Member {
  showRange(from: number, to: number): void;
  showCursor(x: number | null): void;
  showSeries(): void;
}

/** Hidden and highlighted series of a run, by key: a flow that is hidden in one panel is hidden in all. */
export class Selection {
  readonly hidden = new Set<string>();
  highlighted: string | null = null;
  private readonly listeners = new Set<() => void>();

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  toggle(key: string): void {
    if (!this.hidden.delete(key)) this.hidden.add(key);
    this.tell();
  }

  /** Show only this one of `all`; show all if it already is the only one. */
  only(key: string, all: readonly string[]): void {
    const alone = !this.hidden.has(key) && all.every((other) => other === key || this.hidden.has(other));
    for (const other of all) {
      if (alone || other === key) this.hidden.delete(other);
      else this.hidden.add(other);
    }
    this.tell();
  }

  highlight(key: string | null): void {
    if (this.highlighted === key) return;
    this.highlighted = key;
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

/** Panels with a common x axis. `whole` grows as panels join. */
export class Link {
  private readonly members = new Set<Member>();
  private readonly listeners = new Set<() => void>();
  whole: [number, number] = [Infinity, -Infinity];
  private ends: [number | null, number | null] = [null, null];
  private shown: [number, number] | null = null; // null: the first range
  cursor: number | null = null;

  cover(from: number, to: number): void {
    if (Number.isFinite(from) && Number.isFinite(to) && from <= to) {
      this.whole = [Math.min(this.whole[0], from), Math.max(this.whole[1], to)];
    }
  }

  /** The range that is shown at first ends here; null: at the end of `whole`, which reaches at least as far. */
  bound(least: number | null, most: number | null): void {
    this.ends = [least ?? this.ends[0], most ?? this.ends[1]];
    for (const end of this.ends) if (end !== null) this.cover(end, end);
  }

  join(member: Member): void {
    this.members.add(member);
  }

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  get zoomed(): boolean {
    return this.shown !== null;
  }

  private get first(): [number, number] {
    const [low, high] = this.whole;
    const [from, to] = [Math.max(low, this.ends[0] ?? low), Math.min(high, this.ends[1] ?? high)];
    return from < to ? [from, to] : [low, high];
  }

  get range(): [number, number] {
    const [low, high] = this.whole;
    if (!(low <= high)) return [0, 1];
    if (low === high) return [low - 0.5, high + 0.5];
    const [from, to] = this.shown ?? this.first;
    return [Math.max(low, from), Math.min(high, to)];
  }

  /** Show from..to, limited to `whole` and to at least a millionth of it. */
  show(from: number, to: number): void {
    const [low, high] = this.whole;
    const all = high - low;
    if (!(all > 0) || !Number.isFinite(from) || !Number.isFinite(to)) return;
    const width = Math.min(all, Math.max(Math.abs(to - from), all / 1e6));
    const start = Math.min(Math.max(Math.min(from, to), low), high - width);
    const [first, last] = this.first;
    const near = (one: number, other: number): boolean => Math.abs(one - other) <= width * 1e-9;
    this.shown = near(start, first) && near(start + width, last) ? null : [start, start + width];
    const [a, b] = this.range;
    for (const member of this.members) member.showRange(a, b);
    for (const listener of this.listeners) listener();
  }

  reset(): void {
    this.show(...this.first);
  }

  /** Zoom by `factor` around `centre` (default: the middle): in below one, out above one. */
  zoom(factor: number, centre?: number): void {
    const [from, to] = this.range;
    const about = centre !== undefined && centre >= from && centre <= to ? centre : (from + to) / 2;
    this.show(about - (about - from) * factor, about + (to - about) * factor);
  }

  /** Move by `share` of the shown range; positive values move to the right. */
  pan(share: number): void {
    const [from, to] = this.range;
    const by = (to - from) * share;
    this.show(from + by, to + by);
  }

  point(x: number | null): void {
    if (this.cursor === x) return;
    this.cursor = x;
    for (const member of this.members) member.showCursor(x);
  }
}
