// SPDX-License-Identifier: MIT OR Apache-2.0
// Builds one file, python/ktrxer/view/bundle/report.html, with markup, style and script. The Python side inserts title,
// text and data. With KTRXER_PAGE=explorer: explorer.html, the page of `ktrxer view`, which asks its server for data.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const PAGE = process.env.KTRXER_PAGE === "explorer" ? "explorer" : "report";
const SOURCE = PAGE === "explorer" ? "explorer.html" : "index.html";

function digest(text: string): string {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") {
          if (script) this.error(`a second chunk: ${name}`);
          script = file.code;
          delete bundle[name];
        } else if (name.endsWith(".css")) {
          style += String(file.source);
          delete bundle[name];
        }
      }
      const page = bundle[SOURCE];
      if (page?.type !== "asset" || !script || !style) this.error("a page, a program and a style were expected");
      // The bundle contains the licence of uPlot.
      const licence = readFileSync(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8").trim();
      script = `/*!\nktrxer: MIT OR Apache-2.0\n\nWith uPlot:\n${licence}\n*/\n${script.trim()}\n`.replaceAll(
        "</script",
        "<\\/script",
      );
      style = style.trim();
      // The policy allows only this script and this style, by their digests. It forbids text as markup, and fetches
      // except those of the explorer from its own server.
      const policy = [
        "default-src 'none'",
        `script-src ${digest(script)}`,
        `style-src ${digest(style)}`,
        "img-src data:",
        ...(PAGE === "explorer" ? ["connect-src 'self'"] : []),
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join("; ");
      const html = String(page.source)
        .replace(/\s*<(script|link)[^>]*(src|href)="[^"]*\/assets\/[^"]*"[^>]*>(<\/script>)?/g, "")
        .replace(/\s*<script[^>]*src=[^>]*><\/script>/g, "")
        .replace("%CSP%", () => policy)
        .replace("</head>", () => `<style>${style}</style>\n  </head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n  </body>`);
      page.source = html;
      page.fileName = `${PAGE}.html`;
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  // Long time-outs, because a browser is slow on a busy machine.
  test: { testTimeout: 120_000, hookTimeout: 120_000 },
  build: {
    outDir: process.env.KTRXER_WEB_OUT ?? "../python/ktrxer/view/bundle",
    emptyOutDir: PAGE === "report",
    rollupOptions: { input: fileURLToPath(new URL(SOURCE, import.meta.url)) },
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
