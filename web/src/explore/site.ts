// SPDX-License-Identifier: MIT OR Apache-2.0
// An exported directory (python/ktrxer/explore/site.py): the answers of the server that need no choice of runs are in
// the page. The columns of a run are read when its picture is drawn first.

import { unpacked } from "../arrays";
import { dict, list, text, type Dict } from "../data";
import { Refusal, unpack, type Binary, type Source } from "./api";

const LIVE = "`ktrxer view` of the directory can do that; this page has only what was exported";

const UNKNOWN = "This page has no such run.";

interface Stored {
  element: string;
  /** null: the run cannot be read. */
  metadata: Dict | null;
  /** Why there are no pictures of it; "": there are. */
  problem: string;
}

export class Site implements Source {
  readonly live = false;
  readonly view: string;
  private readonly runs = new Map<string, Stored>();
  private readonly read = new Map<string, Binary>();

  constructor(
    private readonly data: Dict,
    private readonly column: (element: string) => string,
  ) {
    this.view = text(data.view, "view");
    list(data.stored, "stored", (value, path) => {
      const one = dict(value, path);
      this.runs.set(text(one.name, `${path}.name`), {
        element: text(one.element, `${path}.element`),
        metadata: one.metadata === null ? null : dict(one.metadata, `${path}.metadata`),
        problem: text(one.problem, `${path}.problem`),
      });
    });
  }

  /** That of this page; null: the page is filled by a server. */
  static here(): Site | null {
    const node = document.getElementById("site");
    if (!node) return null;
    const data: unknown = JSON.parse(node.textContent ?? "");
    return new Site(dict(data, "site"), (id) => document.getElementById(id)?.textContent ?? "");
  }

  async json(name: string, asked: Dict = {}): Promise<Dict> {
    if (name === "about") return dict(this.data.about, "about");
    if (name === "runs") {
      const table = dict(this.data.table, "table");
      const known = list(table.columns, "columns", text);
      const wanted = list(asked.columns ?? [], "columns", text);
      const missing = wanted.find((column) => !known.includes(column));
      if (missing !== undefined) throw new Refusal(`The column ${missing}: ${LIVE}.`, [missing]);
      if (asked.where) throw new Refusal(`A condition: ${LIVE}. Search for words instead.`);
      return table;
    }
    if (name === "metadata") {
      const found = list(asked.runs, "runs", text).flatMap((run) => this.runs.get(run) ?? []);
      const runs = found.flatMap((one) => one.metadata ?? []);
      const problems = found.flatMap((one) => (one.metadata ? [] : one.problem));
      if (runs.length === 0) throw new Refusal(problems[0] ?? UNKNOWN);
      return { runs, problems };
    }
    throw new Refusal(`${LIVE}.`);
  }

  async binary(name: string, asked: Dict): Promise<Binary> {
    if (name !== "picture") throw new Refusal(`${LIVE}.`);
    const names = list(asked.runs, "runs", text);
    const shown = names[typeof asked.shown === "number" ? asked.shown : 0] ?? "";
    const { data, columns, arrays } = this.run(shown);
    const plots = dict(data.plots, "plots");
    const wanted = text(asked.plot, "plot") || text(data.first, "first");
    if (!Object.hasOwn(plots, wanted))
      throw new Refusal(`The plot ${wanted}: the run has no samples for it, or it was not exported.`);
    return { data: { ...dict(plots[wanted], wanted), names: [], problems: data.problems }, columns, arrays };
  }

  async file(): Promise<Blob> {
    throw new Refusal(`${LIVE}.`);
  }

  private run(name: string): Binary {
    const done = this.read.get(name);
    if (done) return done;
    const stored = this.runs.get(name);
    if (!stored) throw new Refusal(UNKNOWN);
    if (stored.problem) throw new Refusal(stored.problem);
    const bytes = unpacked(this.column(stored.element));
    const made = unpack(bytes.buffer as ArrayBuffer);
    this.read.set(name, made);
    return made;
  }
}
