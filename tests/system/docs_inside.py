# SPDX-License-Identifier: MIT OR Apache-2.0
"""Started by test_docs.py in `near` of docs.toml: runs the command lines of one page unchanged and in order.

    docs_inside.py PLAN      JSON: [[host, command line, timeout in seconds], ...]; prints one JSON object a line: status and output

Each host has a directory. A `ktrxer serve` of a page runs until the page's last command has ended.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def started(words: list[str], **more: Any) -> subprocess.Popen[str]:
    """Start a command line in its own process group, so that its children end with it."""
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **more
    )


def finished(child: subprocess.Popen[str], timeout: float) -> tuple[int, str]:
    """Status and output of a command line; its whole process group is killed at the time limit."""
    try:
        output, _ = child.communicate(timeout=timeout)
        return child.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return 124, f"{child.communicate()[0]}\nkilled after {timeout} s"


def main() -> int:
    place = Path.cwd()
    plan = json.loads(Path(sys.argv[1]).read_text())
    for words in ("link set to-far down", "link set to-far name eth0", "link set eth0 up"):
        subprocess.run(["ip", *words.split()], check=True)
    # Remove the lab's own token, because it would hide a missing token in a page.
    environment = {name: value for name, value in os.environ.items() if name != "KTRXER_TOKEN"}
    servers = []
    try:
        for host, line, timeout in plan:
            words = [*(["ip", "netns", "exec", "far"] if host == "far" else []), "bash", "-c", line]
            child = started(words, cwd=place / host, env=environment)
            assert child.stdout is not None
            if line.startswith("ktrxer serve"):
                servers.append(child)
                first = child.stdout.readline()
                answer = {"status": 0 if "listening" in first else 1, "output": first}
            else:
                status, output = finished(child, timeout)
                kept = re.search(r">([\w.-]+)$", line)
                answer = {"status": status, "output": output + ((place / host / kept[1]).read_text() if kept and status != 124 else "")}
            print(json.dumps(answer), flush=True)
    finally:
        for child in servers:
            os.killpg(child.pid, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
