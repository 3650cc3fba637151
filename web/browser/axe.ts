// SPDX-License-Identifier: MIT OR Apache-2.0
// The rules of axe-core: checks of a page by a program that is not ours. access.ts has rules that axe-core does not
// have, such as the order of the stops of the Tab key.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** WCAG 2.2, level AA, and what axe-core calls best practice. */
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Rules with such a tag that are off unless asked for. */
const ALSO = ["target-size", "label-content-name-mismatch"];

/** Each violation of a rule by an element that is visible now, as a line. */
export async function violations(page: Page): Promise<string[]> {
  // As an expression of the inspector, the source needs no permission of the page's policy.
  await page.evaluate(SOURCE);
  const found = await page.evaluate(
    async ([tags, also]) => {
      const { axe } = window as unknown as { axe: typeof import("axe-core") };
      const rules = Object.fromEntries(also.map((name) => [name, { enabled: true }]));
      return axe.run(document, { runOnly: { type: "tag", values: tags }, rules });
    },
    [TAGS, ALSO] as const,
  );
  if (found.passes.length === 0) throw new Error("axe-core has applied no rule");
  return found.violations.flatMap((rule) =>
    rule.nodes.map((node) => {
      const why = [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ");
      return `${rule.id}: ${node.html.slice(0, 90)}: ${why}`;
    }),
  );
}
