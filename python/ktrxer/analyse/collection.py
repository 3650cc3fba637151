# SPDX-License-Identifier: MIT OR Apache-2.0
"""Facts, layout and figures of many runs, from the cache (cache.py) or by several processes."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ktrxer.analyse import cache as caches
from ktrxer.analyse.figure import Figure
from ktrxer.analyse.grouping import Facts, Member, facts
from ktrxer.store import Run, StoreError

FEW = 4  # files that are not worth further processes

Opened = Callable[[Path], Run]
Found = dict[str, Any]  # JSON of each part
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Failure:
    path: Path
    text: str


@dataclass(frozen=True)
class Collection:
    members: list[Member]
    known: dict[str, Figure]  # a description of each figure, in the order of the first run that has it
    failures: list[Failure]


def collect(paths: Sequence[Path], opened: Opened, cache: Path | None = None, keys: Sequence[str] = ()) -> Collection:
    """Runs with their figures. `opened` reads a run from a path (StoreError if there is none); `keys`: properties beside the usual ones."""
    members: list[Member] = []
    known: dict[str, Figure] = {}
    failures: list[Failure] = []
    for path, found in gather(paths, opened, ("facts", "figures"), cache, keys).items():
        if isinstance(found, Failure):
            failures.append(found)
            continue
        figures = [Figure(**one) for one in found["figures"]]
        members.append(Member(str(path), Facts(**found["facts"]), {one.key: one.value for one in figures}))
        known |= {one.key: one for one in figures if one.key not in known}
    return Collection(members, known, failures)


def gather(
    paths: Sequence[Path], opened: Opened, parts: Sequence[str], cache: Path | None = None, keys: Sequence[str] = ()
) -> dict[Path, Found | Failure]:
    """The parts (of PARTS) of each run, in the order of the paths. Files whose parts are in the cache are not read again."""
    kept = caches.Cache(cache)
    identities = {path: key for path in paths if (key := caches.identity(path)) is not None}
    rows = {part: kept.get(part, list(identities.values())) for part in parts}
    made: dict[Path, Found | Failure] = {}
    requested = set(keys)
    for path in paths:
        kept_parts = {part: json.loads(rows[part][identities[path]]) for part in parts if identities.get(path) in rows[part]}
        if "facts" in kept_parts and not set(keys) <= kept_parts["facts"]["properties"].keys():
            requested |= kept_parts.pop("facts")["properties"].keys()
        made[path] = kept_parts
    missing: dict[Path, list[str]] = {}
    links: dict[Path, list[Path]] = {}  # paths that are the same file as the first of them
    first: dict[str, Path] = {}
    for path, found in made.items():
        if isinstance(found, dict) and (some := [part for part in parts if part not in found]):
            one = first.setdefault(identities.get(path, str(path)), path)
            missing.setdefault(one, some)
            links.setdefault(one, []).append(path)
    fresh: dict[str, dict[str, str]] = {part: {} for part in parts}
    for path, computed in _computed(missing, opened, sorted(requested)):
        if isinstance(computed, Failure):
            made |= {one: computed if one == path else Failure(one, computed.text.replace(str(path), str(one))) for one in links[path]}
            continue
        new = {part: json.loads(text) for part, text in computed.items()}
        for one in links[path]:
            made[one] = {**made[one], **new}  # type: ignore[dict-item]
        for part, text in computed.items():
            if path in identities:
                fresh[part][identities[path]] = text
    for part in parts:
        kept.keep(part, fresh[part])
    return made


# ------------------------------------------------------------------------------------------------------------------ one run


def _figures(run: Run) -> list[dict[str, Any]]:
    from ktrxer.analyse.figures import narrow, of_run

    return [vars(one) for one in of_run(narrow(run))]


def _layout(run: Run) -> dict[str, Any]:
    """The rows of the tables `series` and `phases` of a data set (dataset.py)."""
    from ktrxer.figures.facts import interval_ns, probes_of

    series = []
    for s in run.meta.series:
        probes = probes_of(run, s) if s.kind == "latency" else None
        series.append([s.id, s.name, s.kind, s.unit, s.group, s.klass, s.direction, probes, interval_ns(run, s)])
    return {"id": run.meta.id, "series": series, "phases": [[p.name, p.from_ns, p.to_ns] for p in run.meta.phases]}


PARTS: Mapping[str, Callable[[Run, Sequence[str]], Any]] = {
    "facts": lambda run, keys: asdict(facts(run.meta, keys)),
    "layout": lambda run, _: _layout(run),
    "figures": lambda run, _: _figures(run),
}


def _computed(wanted: Mapping[Path, Sequence[str]], opened: Opened, keys: Sequence[str]) -> Iterator[tuple[Path, dict[str, str] | Failure]]:
    if len(wanted) > FEW and any(set(parts) - {"facts"} for parts in wanted.values()):
        # Import once, before the processes are forked, and not in each of them.
        import pyarrow.parquet  # noqa: F401

        import ktrxer.analyse.figures  # noqa: F401
    work = partial(_compute, opened=opened, keys=keys)
    for (path, _), made in zip(wanted.items(), in_parallel(work, list(wanted.items()), FEW), strict=True):
        reason = "a process that reads files was killed, perhaps for lack of memory: give fewer files"
        yield path, made if made is not None else Failure(path, f"{path}: not read: {reason}")


def in_parallel(work: Callable[[A], B], items: Sequence[A], few: int) -> Iterator[B | None]:
    """`work` of each item, by a process for each processor if there are more than `few` items. None: the process was killed."""
    processors = len(os.sched_getaffinity(0))
    if len(items) <= few or processors < 2:
        yield from map(work, items)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    done = 0
    # Otherwise the garbage collector of the processes finalises objects of this one, some of which need its threads: DuckDB's then crash.
    gc.freeze()
    try:
        with ProcessPoolExecutor(min(processors, 8), mp_context=multiprocessing.get_context("fork")) as pool:
            for made in pool.map(work, items, chunksize=max(1, len(items) // (8 * processors))):
                done += 1
                yield made
    except BrokenProcessPool:
        yield from [None] * (len(items) - done)
    finally:
        gc.unfreeze()


def _compute(wanted: tuple[Path, Sequence[str]], opened: Opened, keys: Sequence[str]) -> dict[str, str] | Failure:
    path, parts = wanted
    try:
        run = opened(path)
        return {part: json.dumps(PARTS[part](run, keys)) for part in parts}
    except StoreError as error:
        return Failure(path, str(error))
    except OSError as error:
        return Failure(path, f"{path}: {error.strerror or error}")
    except MemoryError:
        return Failure(path, f"{path}: it does not fit into this machine's memory")
    except ImportError:
        raise
    except Exception as error:
        defect = f"{type(error).__name__}: {error}; this is a defect of ktrxer, please report it with the file"
        return Failure(path, f"{path}: cannot be read: {defect}")
