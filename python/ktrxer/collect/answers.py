# SPDX-License-Identifier: MIT OR Apache-2.0
"""Output of the system's commands, as values of bounded size."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

# Runs a command in a place: its standard output, or None if it is missing, failed, or took too long.
Ask = Callable[[Sequence[str]], str | None]

VALUE_LIMIT = 300  # characters of a value
LINES_MOST = 500
HERE_S = 2.0


def here(argv: Sequence[str]) -> str | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(argv, capture_output=True, timeout=HERE_S, stdin=subprocess.DEVNULL, check=False)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
    return None


def present(**values: Any) -> dict[str, Any]:
    """The members that are known."""
    return {key: value for key, value in values.items() if value not in (None, "", {}, [])}


def fields(text: str | None) -> dict[str, str]:
    """Lines of the form `name: value`."""
    pairs = (line.partition(":") for line in (text or "").splitlines()[:LINES_MOST])
    return {name.strip(): value.strip()[:VALUE_LIMIT] for name, found, value in pairs if found}


def after(text: str | None, word: str) -> str:
    """The rest of the line that begins with a word."""
    found = re.search(rf"^[ \t]*{word} (.{{1,100}})$", text or "", re.MULTILINE)
    return found[1] if found else ""


def wifi(ask: Ask, device: str, full: bool) -> dict[str, Any]:
    """The association of a WiFi device. The network's name and address identify a place, so they are recorded on request only (`full`)."""
    link = ask(["iw", "dev", device, "link"])
    if link is None or "Connected to" not in link:
        return {}
    lines, info = fields(link), ask(["iw", "dev", device, "info"])
    channel = re.match(r"(\d{1,4}) \(\d{3,6} MHz\)(?:, width: (\d{1,4}) MHz)?", after(info, "channel"))
    texts = {"frequency_mhz": lines.get("freq"), "signal_dbm": lines.get("signal"), "txpower_dbm": after(info, "txpower")}
    found = {name: re.match(r"-?\d{1,5}(?:\.\d{1,4})?", text or "") for name, text in texts.items()}
    address = re.search(r"Connected to ([0-9a-fA-F:]{17})", link)
    return present(
        rx_bitrate=lines.get("rx bitrate"), tx_bitrate=lines.get("tx bitrate"),
        channel=int(channel[1]) if channel else None, width_mhz=int(channel[2]) if channel and channel[2] else None,
        ssid=lines.get("SSID") if full else None, bssid=address[1] if full and address else None,
        **{name: float(one[0]) for name, one in found.items() if one},
    )  # fmt: skip
