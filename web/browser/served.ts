// SPDX-License-Identifier: MIT OR Apache-2.0
// Starts `ktrxer view` for tests of its page.

import { execFileSync, spawn } from "node:child_process";
import { linkSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { SAMPLES } from "./browser";

const PYTHON = process.env.KTRXER_PYTHON ?? "python3";

export interface Served {
  directory: string;
  /** of the explorer, as its server prints it */
  address: string;
  /** Ends the server and removes the directory. */
  end: () => Promise<void>;
}

/** The explorer of a directory of its own, which has these runs: samples, or one `sample` under all these names. */
export async function view(names: string[], sample?: string): Promise<Served> {
  const directory = mkdtempSync(path.join(tmpdir(), "ktrxer-view-"));
  for (const name of names)
    linkSync(path.resolve(SAMPLES, `${sample ?? name}.ktrxer`), path.join(directory, `${name}.ktrxer`));
  const words = ["-m", "ktrxer", "view", directory, "--no-cache"];
  const server = spawn(PYTHON, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => server.once("exit", done));
  const address = await new Promise<string>((done, failed) => {
    createInterface({ input: server.stdout }).once("line", done);
    server.once("exit", (status) => failed(new Error(`ktrxer view ended with ${status}`)));
  });
  const end = async (): Promise<void> => {
    server.kill("SIGTERM");
    await ended;
    rmSync(directory, { recursive: true });
  };
  return { directory, address, end };
}

/** `ktrxer view DIR --export PAGE` */
export function exported(of: string, page: string, view: string): void {
  const words = ["-m", "ktrxer", "view", of, "--no-cache", "--export", page, "--view", view];
  execFileSync(PYTHON, words, { stdio: ["ignore", "ignore", "ignore"] });
}
