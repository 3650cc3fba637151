// SPDX-License-Identifier: MIT OR Apache-2.0
// Requests to the explorer's server (python/ktrxer/explore/server.py). Each has the token in a header of its own, which
// a page of another site cannot set.

import { Columns, SIZES, type PackedArray } from "../arrays";
import { DataError, dict, index, list, packedHead, type Dict } from "../data";

/** The server has answered that the request cannot be done; the text is for the user. */
export class Refusal extends Error {
  /** `columns`: those that no run has, if that is the reason. */
  constructor(
    text: string,
    readonly columns: readonly string[] = [],
  ) {
    super(text);
  }
}
/** The server does not answer: it has ended, or the machine sleeps. */
export class Gone extends Error {}

export interface Binary {
  data: Dict;
  columns: Columns;
  arrays: number;
}

/** What fills the page: a server, or the page itself (site.ts). */
export interface Source {
  /** A server, which draws runs together, compares them, evaluates conditions and saves figures. */
  readonly live: boolean;
  json(name: string, asked?: Dict, signal?: AbortSignal): Promise<Dict>;
  binary(name: string, asked: Dict, signal?: AbortSignal): Promise<Binary>;
  file(name: string, asked: Dict): Promise<Blob>;
}

export class Api implements Source {
  readonly live = true;

  constructor(private readonly token: string) {}

  async json(name: string, asked: Dict = {}, signal?: AbortSignal): Promise<Dict> {
    const answer = await this.send(name, asked, signal);
    return dict(await answer.json(), name);
  }

  async file(name: string, asked: Dict): Promise<Blob> {
    return (await this.send(name, asked)).blob();
  }

  async binary(name: string, asked: Dict, signal?: AbortSignal): Promise<Binary> {
    return unpack(await (await this.send(name, asked, signal)).arrayBuffer());
  }

  private async send(name: string, asked: Dict, signal?: AbortSignal): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(`/api/${name}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Ktrxer-Token": this.token },
        body: JSON.stringify(asked),
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new Gone("the explorer's server does not answer");
    }
    if (answer.ok) return answer;
    const said = await answer.json().then(
      (value: unknown) => dict(value, "answer"),
      (): Dict => ({}),
    );
    const known = typeof said.error === "string" && said.error;
    throw new Refusal(
      known || `the server answers with the status ${answer.status}`,
      Array.isArray(said.columns) ? said.columns.map(String) : [],
    );
  }
}

/** The length of the JSON (32 bits, little-endian), the JSON, and the columns, each at its offset `at`. */
export function unpack(buffer: ArrayBuffer): Binary {
  if (buffer.byteLength < 4) throw new DataError("an answer of the server is truncated");
  const length = new DataView(buffer).getUint32(0, true);
  if (4 + length > buffer.byteLength) throw new DataError("an answer of the server is truncated");
  const data = dict(JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))), "answer");
  const arrays = list(data.arrays, "arrays", (value, path): PackedArray => {
    const head = packedHead(value, path);
    const at = 4 + length + index(dict(value, path).at, `${path}.at`);
    const size = head.count * SIZES[head.type];
    if (at + size > buffer.byteLength) throw new DataError("an answer of the server is truncated");
    return { ...head, data: new Uint8Array(buffer, at, size) };
  });
  return { data, columns: new Columns(arrays), arrays: arrays.length };
}
