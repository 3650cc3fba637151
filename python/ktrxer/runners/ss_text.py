# SPDX-License-Identifier: MIT OR Apache-2.0
"""The output of `ss -tinOH` of iproute2 (recorded with 6.1), one socket a line; ss(8) explains the fields."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ktrxer.collect.sockets import SOCKETS_MOST, Tcp, plain_address

NUMBER_MOST = 2**62
_END = re.compile(r"\[?([0-9a-fA-F:.]{2,45})(?:%[^\]:\s]{1,15})?\]?(?:%[^\]:\s]{1,15})?:(\d{1,5})")
_RATE = re.compile(r"([\d.]{1,25})([KMGT]?)bps")
_POWERS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_FLAGS = {"ts", "sack", "ecn", "ecnseen", "fastopen"}  # before the congestion control
_COUNTS = {"cwnd": "cwnd_segments", "ssthresh": "ssthresh_segments", "unacked": "unacked", "lost": "lost",
           "delivered_ce": "delivered_ce", "bytes_acked": "bytes_acked", "bytes_received": "bytes_received"}  # fmt: skip
_RATES = {"pacing_rate": "pacing_rate_bps", "delivery_rate": "delivery_rate_bps"}
_ZERO = ("unacked", "lost", "retransmits")  # ss leaves them out when they are 0


def sockets(text: str) -> Iterator[Tcp]:
    """Lines that are no sockets are left out: listening ones have no far end."""
    joined: list[str] = []
    for line in text.splitlines():
        # The details stand in a line of their own without -O, which begins with a space.
        if joined and line[:1] in (" ", "\t"):
            joined[-1] += line
        else:
            joined.append(line)
    for line in joined[:SOCKETS_MOST]:
        found = _socket(line.split())
        if found is not None:
            yield found


def _socket(words: list[str]) -> Tcp | None:
    for at in range(min(len(words) - 1, 6)):
        here, there = _END.fullmatch(words[at]), _END.fullmatch(words[at + 1])
        if here is None or there is None:
            continue
        try:
            source, peer = plain_address(here[1]), plain_address(there[1])
        except ValueError:
            return None
        cc, info, bbr = _details(words[at + 2 :])
        return Tcp(source, int(here[2]), peer, int(there[2]), cc, info, bbr)
    return None


def _details(words: list[str]) -> tuple[str, dict[str, int], dict[str, float]]:
    cc, values = "", False
    info: dict[str, int] = {}
    bbr: dict[str, float] = {}
    for word, following in zip(words, [*words, ""][1:], strict=True):
        key, colon, text = word.partition(":")
        if key in _RATES and not colon:
            rate = _rate(following)
            info |= {_RATES[key]: round(rate)} if rate is not None else {}
        elif not colon:
            cc = word[:16] if not values and not cc and word not in _FLAGS else cc
        elif key in _COUNTS:
            info |= {_COUNTS[key]: int(text)} if re.fullmatch(r"\d{1,18}", text) else {}
        elif key in ("rtt", "minrtt"):
            info |= _round_trips(key, text)
        elif key == "retrans":
            total = text.rpartition("/")[2]
            info |= {"retransmits": int(total)} if re.fullmatch(r"\d{1,18}", total) else {}
        elif key == "bbr":
            bbr = _bbr(text)
        values = values or bool(colon)
    return cc, dict.fromkeys(_ZERO, 0) | info if "cwnd_segments" in info else info, bbr


def _round_trips(key: str, text: str) -> dict[str, int]:
    """Milliseconds; the mean deviation follows the mean."""
    names = ("rtt_us", "rttvar_us") if key == "rtt" else ("min_rtt_us",)
    found = [_number(part) for part in text.split("/")]
    return {name: round(1000 * value) for name, value in zip(names, found, strict=False) if value is not None}


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d{1,12})?", text) else None


def _rate(text: str) -> float | None:
    found = _RATE.fullmatch(text)
    value = _number(found[1]) if found is not None else None
    if found is None or value is None or value * _POWERS[found[2]] > NUMBER_MOST:
        return None
    return value * _POWERS[found[2]]


def _bbr(text: str) -> dict[str, float]:
    """(bw:9.9Mbps,mrtt:0.05,pacing_gain:2.88,cwnd_gain:2.88)"""
    found: dict[str, float] = {}
    for part in text.strip("()").split(","):
        key, _, word = part.partition(":")
        value = _rate(word) if key == "bw" else _number(word)
        if key in ("bw", "mrtt", "pacing_gain", "cwnd_gain") and value is not None:
            found["min_rtt" if key == "mrtt" else key] = value
    return found
