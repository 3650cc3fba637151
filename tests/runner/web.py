# SPDX-License-Identifier: MIT OR Apache-2.0
"""The suite of the pages of reports and of the explorer."""

from __future__ import annotations

import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import counts

from runner.suite import CORES, ROOT, VENV, Suite


def web(suite: Suite) -> None:
    """The pages of reports and of the explorer: types, unit tests, a comparison of the committed bundles with new builds, and tests in a browser."""
    version = re.match(r"v(\d+)", subprocess.run(["node", "--version"], capture_output=True, text=True).stdout) if shutil.which("node") else None
    if version is None or int(version[1]) < 18:
        suite.skipped("web", f"node 18 or newer is not here{f' (only {version[1]})' if version else ''}: apt-get install nodejs npm")
        return
    if not (ROOT / "web" / "node_modules" / ".ok").exists():
        suite.failed("web", "there is no web/node_modules: `make web/node_modules/.ok` makes it (and `make test` does)")
        return
    modules = ROOT / "web" / "node_modules" / ".bin"
    with tempfile.TemporaryDirectory(prefix="ktrxer-web-") as place, concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        samples = pool.submit(suite.step, "reports for the browser", [str(VENV / "python"), "tests/python/view_samples.py", place], 240)
        others: list[concurrent.futures.Future[Any]] = [
            pool.submit(vitest, suite, "test", 240),
            pool.submit(suite.step, "tsc", [str(modules / "tsc"), "--noEmit", "-p", "web"], 240),
            *(pool.submit(bundle, suite, modules, page, Path(place) / f"built-{page}") for page in ("report", "explorer")),
        ]
        for other in others:
            other.result()
        chromium = os.environ.get("KTRXER_CHROMIUM", "/usr/bin/chromium")
        if not os.access(chromium, os.X_OK):
            suite.skipped("browser tests", f"{chromium} is not here: apt-get install chromium, or name one in KTRXER_CHROMIUM")
            return
        # Alone, because one of them looks at frames a second.
        if samples.result():
            settings = {"KTRXER_SAMPLES": place, "KTRXER_CHROMIUM": chromium, "KTRXER_PYTHON": str(VENV / "python")}
            vitest(suite, "browser", 720, settings, f"--retry={len(counts.TURNS)}")


def bundle(suite: Suite, modules: Path, page: str, to: Path) -> None:
    settings = {"KTRXER_WEB_OUT": str(to), "KTRXER_PAGE": page}
    if not suite.step(f"vite build of the {page}", [str(modules / "vite"), "build", "web", "--logLevel", "warn"], 240, settings):
        return
    built, kept = (folder / f"{page}.html" for folder in (to, ROOT / "python" / "ktrxer" / "view" / "bundle"))
    if built.read_bytes() == kept.read_bytes():
        suite.passed(f"the committed page {page}.html is what web/ makes")
    else:
        suite.failed(f"the committed page {page}.html is what web/ makes", "it differs: `make web`, and commit python/ktrxer/view/bundle")


def vitest(suite: Suite, folder: str, timeout: float, environment: dict[str, str] | None = None, *options: str) -> None:
    result = suite.log.with_suffix(f".{folder}.xml")
    result.unlink(missing_ok=True)
    command = [str(ROOT / "web" / "node_modules" / ".bin" / "vitest"), "run", "--root", "web", "--dir", f"web/{folder}", "--reporter=default",
               "--reporter=junit", f"--outputFile.junit={result}", *options]
    status, output = suite.run(command, timeout, {"CI": "true", **(environment or {})})
    suite.add(f"vitest {folder}", counts.junit(result) if result.exists() else [], status, output)
    suite.late += [f"passed at a later try: {suite.name}: {' '.join(line.split())}" for line in re.findall(r"^.*\(retry x\d+\).*$", output, re.MULTILINE)]
