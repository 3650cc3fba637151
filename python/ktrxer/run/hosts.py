# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of the other hosts of a run: those of its places, and those that the user names."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ktrxer.collect import Ask, gather_elsewhere, own_address
from ktrxer.places import LOCAL, Place, PlaceError, run

EACH_S = 5.0  # of one command, at most
ALL_S = 20.0  # of all commands in one place
AT_ONCE = 16  # places
# The login shell of a user may lack the folders of the administrator's commands.
FIND = ["sh", "-c", 'PATH=$PATH:/usr/sbin:/sbin exec "$@"', "sh"]


def asking(place: Place, all_s: float = ALL_S) -> Ask:
    """Runs short commands in a place, until `all_s` have passed or the place is lost."""
    until = time.monotonic() + all_s

    def ask(argv: Sequence[str]) -> str | None:
        left = min(EACH_S, until - time.monotonic())
        if left <= 0 or place.loss() is not None:
            return None
        try:
            done = run(place, [*FIND, *argv], left)
        except (PlaceError, OSError):
            return None
        return done.out.decode("utf-8", "replace") if done.status == 0 else None

    return ask


def states(
    places: Mapping[str, Place], measuring: Collection[str], address: str, *, full: bool, source: str | None = None
) -> dict[str, dict[str, Any]]:
    """Hosts by place. `measuring`: the places whose processes measure towards `address`; the route of the others is that to this host, to
    its address `source` if that is given."""
    others = {name: place for name, place in places.items() if name != LOCAL}
    if not others:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    here = (source or own_address(address)) if others.keys() - set(measuring) else None

    def state(name: str) -> dict[str, Any]:
        return gather_elsewhere(asking(others[name]), address if name in measuring else here, full=full)

    with ThreadPoolExecutor(min(AT_ONCE, len(others))) as pool:
        found = dict(zip(others, pool.map(state, others), strict=True))
    return {name: made or {"missing": others[name].loss() or "no command of the system worked there"} for name, made in found.items()}
