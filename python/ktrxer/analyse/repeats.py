# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs that were cut off and made again. `ktrxer batch` leaves NAME.ktrxer.part of such a run, and stores its repeat beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ktrxer.analyse.collection import Failure, Found, Opened, gather
from ktrxer.store.names import PART
from ktrxer.store.run import being_written


def repeated(paths: Sequence[Path], opened: Opened, cache: Path | None) -> dict[Path, Path]:
    """The runs that were cut off and have a repeat: a finished run of the same number of the same batch."""
    cut = [path for path in paths if path.name.endswith(PART) and not being_written(path)]
    wanted = _places(gather(cut, opened, ("facts",)))
    if not wanted:
        return {}
    finished = [path for path in paths if not path.name.endswith(PART)]
    there = {place: path for path, place in _places(gather(finished, opened, ("facts",), cache)).items()}
    return {path: there[place] for path, place in wanted.items() if place in there}


def _places(found: Mapping[Path, Found | Failure]) -> dict[Path, tuple[str, int]]:
    """The batch of each run, and its number there; of runs of batches."""
    facts = {path: one["facts"] for path, one in found.items() if not isinstance(one, Failure)}
    return {path: (one["batch"], one["number"]) for path, one in facts.items() if one["batch"]}


def sentence(path: Path, repeat: Path) -> str:
    return f"{path.name}: it was cut off, and {repeat.name} repeats it"
