# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reading a device's console: whether its kernel died, and why."""

from __future__ import annotations

import re

FATAL = re.compile(
    r"Kernel panic - not syncing.*|Unable to handle kernel.*|BUG: unable to handle.*|kernel BUG at .*|double fault.*"
    r"|general protection fault.*|Internal error: Oops.*|Oops\[#\d+\].*|Initramfs unpacking failed.*|ktrxer-lab: .*"
)
STAMP = re.compile(r"^(<\d+>)?\[\s*\d+\.\d+\]\s*")


def death(console: str) -> str | None:
    """The line with the cause of death of the device: the panic if there is one, else the first fatal line."""
    found = [match[0].strip() for match in map(FATAL.search, console.splitlines()) if match]
    panics = [line for line in found if line.startswith("Kernel panic")]
    if not found:
        return None
    return found[0] if not panics or found[0] == panics[0] else f"{panics[0]} (first: {found[0]})"


def warnings(kernel_log: list[str]) -> list[str]:
    """Kernel messages of level warning or worse (raw form: `<4>[    1.0] text`)."""
    bad = []
    for line in kernel_log:
        match = re.match(r"<(\d+)>", line)
        if match and int(match[1]) & 7 <= 4:
            bad.append(STAMP.sub("", line))
    return bad


def tail(console: str, lines: int = 12) -> str:
    return "\n".join(line.rstrip() for line in console.splitlines()[-lines:])
