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

/** Panels with a common x axis. `whole` grows as panels join; `from` and `to` are the shown range. */
export class Link {
  private readonly members = new Set<Member>();
  private readonly listeners = new Set<() => void>();
  whole: [number, number] = [Infinity, -Infinity];
  from = -Infinity;
  to = Infinity;
  cursor: number | null = null;

  cover(from: number, to: number): void {
    if (Number.isFinite(from) && Number.isFinite(to) && from <= to) {
      this.whole = [Math.min(this.whole[0], from), Math.max(this.whole[1], to)];
    }
  }

  join(member: Member): void {
    this.members.add(member);
  }

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  get zoomed(): boolean {
    return this.from > this.whole[0] || this.to < this.whole[1];
  }

  get range(): [number, number] {
    const [low, high] = this.whole;
    if (!(low <= high)) return [0, 1];
    if (low === high) return [low - 0.5, high + 0.5];
    return [Math.max(low, this.from), Math.min(high, this.to)];
  }

  /** Show from..to, limited to `whole` and to at least a millionth of it. */
  show(from: number, to: number): void {
    const [low, high] = this.whole;
    const all = high - low;
    if (!(all > 0) || !Number.isFinite(from) || !Number.isFinite(to)) return;
    const width = Math.min(all, Math.max(Math.abs(to - from), all / 1e6));
    const start = Math.min(Math.max(Math.min(from, to), low), high - width);
    this.from = width === all ? -Infinity : start;
    this.to = width === all ? Infinity : start + width;
    const [a, b] = this.range;
    for (const member of this.members) member.showRange(a, b);
    for (const listener of this.listeners) listener();
  }

  reset(): void {
    this.show(this.whole[0], this.whole[1]);
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
