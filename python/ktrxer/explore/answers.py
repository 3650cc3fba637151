# SPDX-License-Identifier: MIT OR Apache-2.0
"""The answer to each request of the explorer's page. A wrong request raises Refused; its text is one line for the user."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import ktrxer
from ktrxer.analyse import grouping, listing, where
from ktrxer.analyse.collection import collect
from ktrxer.commands.opening import open_any
from ktrxer.explore.library import MOST_FOLDERS, Library, Unknown
from ktrxer.panels import arrange, palette, picture, plots, settings
from ktrxer.panels import comparison as comparison_panels
from ktrxer.panels.errors import PlotError
from ktrxer.panels.model import PlotModel
from ktrxer.panels.picture import Picture
from ktrxer.store import Meta
from ktrxer.store.reasons import as_json
from ktrxer.view import numbers, pack
from ktrxer.view.arguments import MOST_RUNS
from ktrxer.view.page import plain
from ktrxer.view.report import Readable, facts

COLUMNS = ("file", "title", "verdict", "test", "when", "target", "length")
MOST_SAMPLES = 400_000  # of one answer, in all series together
MOST_SERIES_SAMPLES = 40_000
LEAST_SERIES_SAMPLES = 1_000
MOST_KEYS = 2_000
MOST_COLUMNS = 40
MOST_COMPARED = 20_000
MOST_MODELS = 32  # pictures that are kept, so that zooming and moving do not make them again
TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png", "csv": "text/csv", "json": "application/json"}

Request = Mapping[str, Any]
Names = list[tuple[str, str]]  # the names of runs, with their labels


class Refused(Exception):
    """The request is wrong, or not possible with these runs. `columns`: those that no run has, if that is the reason."""

    def __init__(self, text: str, columns: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.columns = list(columns)


@dataclass(frozen=True)
class _Made:
    models: dict[int, PlotModel]  # with `shown` one for each run, by its place in the request; else one of all runs
    unread: dict[int, str]  # the runs that cannot be read, by their places, and why
    damage: list[str]
    names: Names
    wish: Picture

    @property
    def problems(self) -> list[str]:
        return [*self.unread.values(), *self.damage]

    def shown(self, request: Request) -> PlotModel:
        if "shown" not in request:
            return next(iter(self.models.values()))
        place = _shown(request, len(self.models) + len(self.unread))
        if place in self.unread:
            raise Refused(self.unread[place])
        return self.models[place]


def _cell(entry: listing.Entry, name: str, key: str) -> str | float | None:
    if key == "file":
        return name[:300] + (f": {entry.problem}"[:300] if entry.head is None else "")
    value = entry.value(key)
    return value[:300] if isinstance(value, str) else None if isinstance(value, float) and not math.isfinite(value) else value


class Answers:
    def __init__(self, library: Library) -> None:
        self.library = library
        self._models: OrderedDict[tuple[Any, ...], _Made] = OrderedDict()
        self._lock = threading.RLock()  # matplotlib and the cache of models are for one thread at a time
        self._table: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})  # the last one, with what was asked for
        self._tables = threading.Lock()

    def warm(self) -> None:
        """Do what the first table and the first picture need, before a page requests them."""
        with contextlib.suppress(Refused, Unknown, OSError, MemoryError):
            self.runs({})
        import_module("ktrxer.store.arrays")
        import_module("pyarrow.parquet")

    # --------------------------------------------------------------------------------------------------------------- table

    def about(self, _: Request) -> dict[str, Any]:
        return {
            "generator": f"ktrxer {ktrxer.__version__}",
            "directory": str(self.library.directory.absolute()),
            "palette": {"light": list(palette.LIGHT), "dark": list(palette.DARK)},
            "arranges": [[name, words] for name, words in arrange.WORDS.items()],
            "settings": [
                {"name": one.name, "help": one.help, "value": one.metavar, "many": one.many, "choices": list(one.choices)}
                for one in settings.SETTINGS
            ],
            "plots": [[name, summary] for name, summary in plots.summaries().items()],
            "keys": sorted({*listing.OF_HEAD, *listing.OF_FILE, *grouping.PROPERTIES}),
        }

    def runs(self, request: Request) -> dict[str, Any]:
        """The table, the newest run first. `columns`: further ones, `where`: a condition as of `ktrxer runs --where`."""
        shown = _texts(request, "columns", MOST_COLUMNS)
        text = _text(request, "where")
        with self._tables:
            entries_of, version = self.library.look()
            key = (version, tuple(shown), text)
            if key != self._table[0]:
                self._table = key, self._table_of(entries_of, version, shown, text)
            return self._table[1]

    def _table_of(
        self, entries_of: Callable[[Sequence[str]], list[listing.Entry]], version: str, shown: list[str], text: str
    ) -> dict[str, Any]:
        try:
            condition = where.parse(text) if text else None
            entries = entries_of([*shown, *(condition.keys if condition is not None else ())])
        except where.WhereError as error:
            raise Refused(f"{text}: {error}") from None
        except listing.UnknownColumn as error:
            raise Refused(str(error), error.keys) from None
        if condition is not None:
            entries = [entry for entry in entries if condition.holds(entry.value)]
        keys = list(dict.fromkeys([*COLUMNS, *shown]))
        rows = []
        for entry in reversed(entries):
            name = self.library.name(entry.path)
            rows.append([name, entry.state, *(_cell(entry, name, key) for key in keys)])
        note = f"Only {MOST_FOLDERS:,} of the directories are looked into; name a directory below." if self.library.left_out else ""
        return {"version": version, "columns": keys, "rows": rows, "note": note}

    def metadata(self, request: Request) -> dict[str, Any]:
        """The facts and metadata of runs. The page finds the values in which they differ."""
        found, unread = self._readable(request)
        labels = plots.labels([one.run for one in found.values()])
        return {
            "runs": [
                {
                    "label": label,
                    "verdict": one.run.meta.verdict or "unknown",
                    "reasons": as_json(one.run.meta.reasons),
                    "damage": list(one.damage),
                    "facts": [[name, value] for name, value in facts(one.run) if value],
                    "repeat": shlex.join(one.run.meta.command) if one.run.meta.command else "",
                    "metadata": plain(_whole(one.run.meta)),
                }
                for label, one in zip(labels, found.values(), strict=True)
            ],
            "problems": list(unread.values()),
        }

    def keys(self, request: Request) -> dict[str, Any]:
        """The figures, settings and metadata of a run, which can be columns beside its properties."""
        first = next(iter(self._readable(request)[0].values())).run
        collected, _ = self._collected([self.library.name(first.path)], [])
        paths = [path for path, value in _leaves(_whole(first.meta)) if not isinstance(value, list)]
        return {"keys": [*collected.known, *paths][:MOST_KEYS]}

    # ------------------------------------------------------------------------------------------------------------- picture

    def picture(self, request: Request) -> bytes:
        """Panels of runs. `shown`: the place of a run among `runs` draws only that run, with the axes of all; `range`: the part of the time
        that is in view."""
        made = self._made(request)
        model = made.shown(request)
        series = sum(len(panel.series) for panel in model.panels)
        most = max(LEAST_SERIES_SAMPLES, min(MOST_SERIES_SAMPLES, MOST_SAMPLES // max(1, series)))
        pool = pack.Pool()
        window = _range(request)
        panels = [pack.panel(panel, pool, most, window) for panel in model.panels]
        data = {"title": model.title, "subtitle": model.subtitle, "columns": model.columns, "panels": panels, "names": made.names}
        data["reduced"] = any(len(one.x) > most for panel in model.panels for one in panel.series)
        return pool.answer(data | {"problems": made.problems, "command": self._command(request, made)})

    def save(self, request: Request) -> tuple[bytes, str, str]:
        """A file of a picture: its bytes, media type and name."""
        kind = _one_of(request, "kind", tuple(TYPES))
        made = self._made(request)
        model, plot = made.shown(request), made.wish.plot
        name = f"{plot}.{kind}"
        if kind == "csv":
            return numbers.csv_of(model), TYPES[kind], name
        if kind == "json":
            return json.dumps(numbers.of_model(plot, model), allow_nan=False).encode("ascii"), TYPES[kind], name
        from ktrxer.imports import missing
        from ktrxer.view import figure

        with self._lock, tempfile.TemporaryDirectory(prefix="ktrxer-view-") as place:
            path = Path(place) / "picture"
            try:
                figure.save(model, path, kind)
            except ModuleNotFoundError as error:
                raise Refused(f"{kind}: {missing(error.name or '')}") from None
            return path.read_bytes(), TYPES[kind], name

    def _made(self, request: Request) -> _Made:
        names = _texts(request, "runs", MOST_RUNS)
        try:
            options = settings.parse(_settings(request))
        except PlotError as error:
            raise Refused(str(error)) from None
        how = cast("arrange.Arrange", _one_of(request, "arrange", arrange.ARRANGES, "overlay"))
        wish = Picture(_text(request, "plot"), how, options)
        single = "shown" in request
        with self._lock:
            try:
                key: tuple[Any, ...] = (*self.library.signatures(names), wish, single)
            except Unknown:
                key = ()
            if key in self._models:
                self._models.move_to_end(key)
                return self._models[key]
            found, unread = self._readable(request)
            runs = [one.run for one in found.values()]
            given = tuple(label for place, label in enumerate(options.labels) if place not in unread)
            wish = replace(wish, plot=wish.plot or plots.default(runs[0]), options=replace(options, labels=given))
            try:
                models = picture.apart(runs, wish) if single else [picture.model(runs, wish)]
            except PlotError as error:
                raise Refused(str(error)) from None
            labels = plots.labels(runs, wish.options)
            damage = [f"{label}: {line}" for label, one in zip(labels, found.values(), strict=True) for line in one.damage]
            named = [(self.library.name(run.path), label) for run, label in zip(runs, labels, strict=True)]
            made = _Made(dict(zip(found, models, strict=False)), unread, damage, named, wish)
            if key:
                self._models[key] = made
            while len(self._models) > MOST_MODELS:
                self._models.popitem(last=False)
            return made

    def _readable(self, request: Request) -> tuple[dict[int, Readable], dict[int, str]]:
        """The runs by their places in the request, and why the others cannot be read."""
        found, unread = {}, {}
        for place, name in enumerate(_texts(request, "runs", MOST_RUNS)):
            try:
                found[place] = self.library.run(name)
            except Unknown as error:
                unread[place] = str(error)
        if not found:
            raise Refused(next(iter(unread.values()), "no run is chosen: tick runs in the table"))
        return found, unread

    def _command(self, request: Request, made: _Made) -> str:
        names, given = _texts(request, "runs", MOST_RUNS), dict(_settings(request))
        if "shown" in request:
            names = [names[_shown(request, len(names))]]
            given.pop("override-label", None)
        else:
            names = [name for place, name in enumerate(names) if place not in made.unread]
            given["override-label"] = list(made.wish.options.labels)
        words = ["ktrxer", "plot", *self._paths(names), "--plot", made.wish.plot]
        if made.wish.arrange != "overlay" and len(names) > 1:
            words += ["--arrange", made.wish.arrange]
        return shlex.join([*words, *settings.texts(given), "-o", f"{made.wish.plot}.svg"])

    def _paths(self, names: Sequence[str]) -> list[str]:
        made = []
        for name in names:
            try:
                made.append(str(self.library.path(name)))
            except Unknown:
                made.append(str(self.library.directory / name))
        return made

    # ---------------------------------------------------------------------------------------------------------- comparison

    def groups(self, request: Request) -> dict[str, Any]:
        """The groups that a property makes of runs."""
        key = _text(request, "by")
        found, problems = self._collected(_texts(request, "runs", MOST_COMPARED), [key])
        try:
            made = grouping.by(found.members, [key])
        except grouping.GroupingError as error:
            raise Refused(str(error)) from None
        return {"groups": [[one.name, [self._name(member) for member in one.members]] for one in made], "problems": problems}

    def compare(self, request: Request) -> bytes:
        """Two groups of runs: sentences, the table of figures, panels."""
        from ktrxer.analyse.compare import compare

        names = [_texts(request, side, MOST_COMPARED) for side in ("a", "b")]
        titles = [_text(request, f"{side}_name") or side.upper() for side in ("a", "b")]
        if not all(names):
            raise Refused("a comparison needs a run in each of the two groups")
        found, problems = self._collected(list(dict.fromkeys([*names[0], *names[1]])), [])
        members = {member.name: member for member in found.members}
        paths = [self._paths(some) for some in names]
        both = [grouping.Group(title, [members[one] for one in some if one in members]) for title, some in zip(titles, paths, strict=True)]
        every = request.get("all") is True
        try:
            for group in both:
                if not every:
                    grouping.only_valid(group)
                grouping.alike(group)
        except grouping.GroupingError as error:
            raise Refused(str(error)) from None
        left = [f"{self.library.name(Path(one.run))}: left out: {one.text}" for group in both for one in group.left_out]
        for group in both:
            if not group.members:
                reasons = "; ".join(left[:3])
                raise Refused(f"group {group.name!r} has no run to compare{': ' + reasons if reasons else ''}")
        made = compare(both[0], both[1], found.known)
        pool = pack.Pool()
        panels = [pack.panel(panel, pool, MOST_SERIES_SAMPLES) for panel in comparison_panels.panels(made)]
        words = ["ktrxer", "compare", *self._paths(names[0]), "--names", ",".join(title.replace(",", " ") for title in titles)]
        command = shlex.join([*words, *(["--all"] if every else []), "--", *self._paths(names[1])])
        return pool.answer({"comparison": plain(made.as_json()), "panels": panels, "problems": [*problems, *left], "command": command})

    def _name(self, member: grouping.Member) -> str:
        return self.library.name(Path(member.name))

    def _collected(self, names: Sequence[str], keys: Sequence[str]) -> tuple[Any, list[str]]:
        paths, problems = [], []
        for name in names:
            try:
                paths.append(self.library.path(name))
            except Unknown as error:
                problems.append(str(error))
        if not paths:
            raise Refused(problems[0] if problems else "no run is chosen: tick runs in the table")
        found = collect(paths, open_any, self.library.cache, [key for key in keys if key not in grouping.PROPERTIES])
        return found, problems + [one.text for one in found.failures]


def _whole(meta: Meta) -> dict[str, Any]:
    """The path of a value as grouping.value_of takes it."""
    return {"settings": meta.settings, "metadata": meta.metadata, "accounts": meta.accounts}


def _leaves(value: Any, path: str = "", depth: int = 64) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and depth:
        return [leaf for name, one in value.items() for leaf in _leaves(one, f"{path}/{name}" if path else str(name), depth - 1)]
    return [(path, value)]


# ------------------------------------------------------------------------------------------------------------------ checks


def _text(request: Request, key: str) -> str:
    value = request.get(key, "")
    if not isinstance(value, str) or len(value) > 4000:
        raise Refused(f"{key}: expected a text of at most 4000 characters")
    return value


def _texts(request: Request, key: str, most: int) -> list[str]:
    value = request.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and len(one) <= 4000 for one in value):
        raise Refused(f"{key}: expected a list of texts")
    if len(value) > most:
        raise Refused(f"{key}: {len(value)} are given; at most {most} are allowed")
    return list(dict.fromkeys(value))


def _one_of(request: Request, key: str, known: Sequence[str], usual: str | None = None) -> str:
    value = request.get(key, usual)
    if value not in known:
        raise Refused(f"{key}: expected one of {', '.join(one for one in known if one)}")
    return str(value)


def _settings(request: Request) -> dict[str, list[str]]:
    value = request.get("settings", {})
    lists = [*value.values()] if isinstance(value, dict) else [None]
    if not all(isinstance(texts, list) and all(isinstance(one, str) for one in texts) for texts in lists):
        raise Refused("settings: expected an object with a list of texts for each setting")
    return cast("dict[str, list[str]]", value)


def _shown(request: Request, count: int) -> int:
    value = request.get("shown", 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused("shown: expected the number of a run")
    return min(value, count - 1)


def _range(request: Request) -> tuple[float, float] | None:
    value = request.get("range")
    if value is None:
        return None
    numbers = [one for one in value if isinstance(one, int | float) and math.isfinite(one)] if isinstance(value, list) else []
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise Refused("range: expected two times in seconds")
    return float(numbers[0]), float(numbers[1])


Route = Callable[[Answers, Request], Any]
ROUTES: dict[str, Route] = {
    "about": Answers.about,
    "runs": Answers.runs,
    "keys": Answers.keys,
    "metadata": Answers.metadata,
    "picture": Answers.picture,
    "save": Answers.save,
    "groups": Answers.groups,
    "compare": Answers.compare,
}
