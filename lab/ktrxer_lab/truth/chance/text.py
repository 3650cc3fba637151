# SPDX-License-Identifier: MIT OR Apache-2.0
"""A draw as text of one line, which `ktrxer truth chance --draw` reads: JSON with the properties that differ from a plain draw."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from ktrxer_lab.errors import LabError
from ktrxer_lab.truth.chance.draw import Draw, Held, Outage, Step
from ktrxer_lab.truth.path import Way

PLAIN_WAY = asdict(Way())
PARTS: dict[str, type[Outage | Held | Step]] = {"outage": Outage, "held": Held, "step": Step}


def of_draw(draw: Draw) -> str:
    words: dict[str, Any] = {}
    for one in fields(draw):
        value = getattr(draw, one.name)
        if isinstance(value, Way):
            words[one.name] = {name: each for name, each in asdict(value).items() if each != PLAIN_WAY[name]}
        elif value != one.default:
            words[one.name] = asdict(value) if isinstance(value, (Outage, Held, Step)) else value
    return json.dumps(words)


def to_draw(text: str) -> Draw:
    try:
        words: dict[str, Any] = json.loads(text)
        ways = {name: Way(**words.pop(name)) for name in ("up", "down")}
        parts = {name: made(**words.pop(name)) for name, made in PARTS.items() if words.get(name)}
        words |= {**ways, "commands": tuple(words["commands"]), **parts}
        return Draw(**words)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(f"not a draw: {error}; a finding's line `again:` has one") from None
