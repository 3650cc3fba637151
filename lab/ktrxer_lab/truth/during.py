# SPDX-License-Identifier: MIT OR Apache-2.0
"""A thread in the guest beside a command, which changes the path at its times."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any


class Events:
    """Changes of the path. Those whose time has not come when the command ends follow then: the next command finds the path as it was."""

    def __init__(self, events: Sequence[tuple[float, str, str]]) -> None:
        self.events, self.begun = sorted(events), time.monotonic()
        self.ended, self.done, self.fault = threading.Event(), list[dict[str, Any]](), ""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self) -> list[dict[str, Any]]:
        """The time of each change, by CLOCK_MONOTONIC of the client, and the output of its command."""
        self.ended.set()
        self.thread.join()
        if self.fault:
            raise RuntimeError(self.fault)
        return self.done

    def _run(self) -> None:
        for at_s, node, shell in self.events:
            self.ended.wait(max(0.0, self.begun + at_s - time.monotonic()))
            now = time.monotonic_ns()
            words = ["ip", "netns", "exec", node, "sh", "-ec", shell]
            made = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.done.append({"at_ns": now, "out": made.stdout, "outage": "table netdev outage" in shell})
            if made.returncode != 0:
                self.fault = f"{node}: {shell}: {made.stderr.strip()}"
