// SPDX-License-Identifier: MIT OR Apache-2.0
// Starts `ktrxer view` for tests of its page.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

const PYTHON = process.env.KTRXER_PYTHON ?? "python3";

export interface Served {
  process: ChildProcess;
  address: string;
}

/** The explorer of a directory, and the address that it prints. */
export async function view(of: string): Promise<Served> {
  const process_ = spawn(PYTHON, ["-m", "ktrxer", "view", of, "--no-cache"], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: process_.stdout });
  const address = await new Promise<string>((done, failed) => {
    lines.once("line", done);
    process_.once("exit", (status) => failed(new Error(`ktrxer view ended with ${status}`)));
  });
  return { process: process_, address };
}

export function end(one: Served): Promise<unknown> {
  const gone = new Promise((done) => one.process.once("exit", done));
  one.process.kill("SIGTERM");
  return gone;
}

/** `ktrxer view DIR --export PAGE` */
export function exported(of: string, page: string, view: string): void {
  const words = ["-m", "ktrxer", "view", of, "--no-cache", "--export", page, "--view", view];
  execFileSync(PYTHON, words, { stdio: ["ignore", "ignore", "ignore"] });
}
