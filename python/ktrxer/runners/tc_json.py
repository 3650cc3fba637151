# SPDX-License-Identifier: MIT OR Apache-2.0
"""The output of `tc -s -j qdisc show` of iproute2 4.19 and newer."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ktrxer.collect.netlink import QUEUES_MOST, Qdisc
from ktrxer.collect.queue_stats import TINS_MOST, Values, marks
from ktrxer.runners.samples import NotUnderstood

ROOT = 0xFFFFFFFF
NUMBER_MOST = 2**62
_COUNTERS = {"bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen", "refcnt"}
# One member of an object, the beginning of an object or array, or the end of one.
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*":\s*)?(?:("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)(?=[\s,}\]])|([\[{]))|[\]}]')


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def load(text: str) -> list[dict[str, Any]]:
    """The objects of a document. Some kinds of some versions print plain words between the JSON: they are left
    out."""
    try:
        try:
            made = json.loads(text, parse_constant=_refuse)
        except ValueError:
            made = json.loads(_scrubbed(text), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NotUnderstood(f"not the JSON of tc: {text[:60]}") from None
    if not isinstance(made, list):
        raise NotUnderstood(f"not a list of tc: {text[:60]}")
    return [one for one in made[:QUEUES_MOST] if isinstance(one, dict)]


def _scrubbed(text: str) -> str:
    """The text has members and brackets only, with commas between them."""
    kept: list[str] = []
    ended = False
    for found in _TOKEN.finditer(text):
        key, scalar, opened = found.groups()
        if scalar is not None and key is None:
            continue
        if ended and (opened or scalar is not None):
            kept.append(",")
        kept.append(found[0])
        ended = not opened
    return "".join(kept)


def queues(text: str, device: str) -> list[tuple[str, Qdisc]]:
    """Device and queue. `device`: of a document that names none."""
    found = []
    for one in load(text) if text.strip() else []:
        kind, dev = one.get("kind"), one.get("dev", device)
        if not isinstance(kind, str) or not isinstance(dev, str):
            raise NotUnderstood(f"a queue without a kind: {json.dumps(one)[:60]}")
        own = _numbers(one, but=_COUNTERS)
        tins = [_numbers(tin) for tin in listed[:TINS_MOST] if isinstance(tin, dict)] if isinstance(listed := one.get("tins"), list) else []
        if "bytes" not in one:
            raise NotUnderstood(f"a qdisc without counters: {json.dumps(one)[:60]}")
        counts = {name: _count(one, name) for name in _COUNTERS}
        parent = ROOT if one.get("root") else handle_number(one.get("parent"))
        found.append((dev[:15], Qdisc(
            0, kind[:16], handle_number(one.get("handle")), parent, counts["bytes"], counts["packets"], counts["drops"],
            counts["overlimits"], counts["requeues"], counts["backlog"], counts["qlen"], marks(kind, own, tins), None, own, tins,
        )))  # fmt: skip
    return found


def handle_number(text: Any) -> int:
    """`8001:` or `1:10`, in hexadecimal digits; 0: none."""
    found = re.fullmatch(r"([0-9a-f]{0,4}):([0-9a-f]{0,4})", text) if isinstance(text, str) else None
    return int(found[1] or "0", 16) << 16 | int(found[2] or "0", 16) if found is not None else 0


def _count(values: dict[str, Any], name: str) -> int:
    value = values.get(name, 0)
    if type(value) is not int or not 0 <= value <= NUMBER_MOST:
        raise NotUnderstood(f"{name} is {json.dumps(value)[:40]}")
    return value


def _numbers(values: dict[str, Any], but: frozenset[str] | set[str] = frozenset()) -> Values:
    return {
        name[:40]: value * 1
        for name, value in values.items()
        if name not in but and isinstance(value, int | float) and _small(value) and (not isinstance(value, bool) or name == "dropping")
    }


def _small(value: float) -> bool:
    return -NUMBER_MOST <= value <= NUMBER_MOST


__all__ = ["NUMBER_MOST", "ROOT", "handle_number", "load", "queues"]
