# SPDX-License-Identifier: MIT OR Apache-2.0
"""The settings of a picture by name, and their values from text. The command line and the address of the explorer have the same names and
the same texts, and both are read here. Little is imported, because the parsers of commands need only the names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ktrxer.panels.errors import SettingError

if TYPE_CHECKING:
    from ktrxer.panels.spec import Options

YES = "yes"  # the text of a setting without a value
PARTS = ("whole", "load", "idle")
LOGS = ("x", "y")
GROUPS = ("name", "batch", "series", "both", "run")
MOST_TEXT = 200
MOST_TEXTS = 64
MOST_SMOOTHING = 100_000

Given = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Setting:
    name: str  # of the option of `ktrxer plot`, and in the address of the explorer
    field: str  # of spec.Options
    read: Callable[[str], Any]  # ValueError: the text is wrong; its message has the valid values
    help: str
    metavar: str = ""  # "": a setting without a value
    many: bool = False
    choices: tuple[str, ...] = ()


def parse(given: Given) -> Options:
    """SettingError: a name or a value is wrong."""
    from ktrxer.panels.spec import Options

    known = {one.name: one for one in SETTINGS}
    fields: dict[str, Any] = {}
    by: dict[str, str] = {}  # the setting of each field
    for name, texts in given.items():
        setting = known.get(name)
        if setting is None:
            raise SettingError(f"unknown setting {name[:60]!r}; valid: {', '.join(known)}")
        if not texts:
            continue
        if len(texts) > (MOST_TEXTS if setting.many else 1):
            raise SettingError(f"{name}: {len(texts)} values are given; at most {MOST_TEXTS if setting.many else 1} can be")
        if setting.field in fields:
            raise SettingError(f"{name}: contradicts {by[setting.field]}; give one of the two")
        values = tuple(_value(setting, text) for text in texts)
        fields[setting.field] = values if setting.many else values[0]
        by[setting.field] = name
    if fields.get("zero") is True and fields.get("log") == "y":
        raise SettingError("zero-y: contradicts log y, because a logarithmic axis has no zero; give one of the two")
    if "scaling" in fields and "bounds_y" in fields:
        raise SettingError("scaling: contradicts bounds-y, because both set the ends of the y axis; give one of the two")
    if fields.get("absolute_time") and fields.get("concatenate"):
        raise SettingError("absolute-time: contradicts concatenate; give one of the two")
    return Options(**fields)


def _value(setting: Setting, text: str) -> Any:
    try:
        if len(text) > MOST_TEXT:
            raise ValueError(f"at most {MOST_TEXT} characters")
        if setting.choices and text not in setting.choices:
            raise ValueError(", ".join(setting.choices))
        return setting.read(text)
    except ValueError as error:
        raise SettingError(f"{setting.name}: {text[:60]!r} is wrong; valid: {error}") from None


# ------------------------------------------------------------------------------------------------------------------ values


def _flag(value: object) -> Callable[[str], object]:
    def read(text: str) -> object:
        if text != YES:
            raise ValueError(YES)
        return value

    return read


def _number(text: str, valid: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(valid)
    return value


def _pair(text: str, valid: str) -> tuple[float, float]:
    low, comma, high = text.partition(",")
    if not comma:
        raise ValueError(valid)
    return _number(low, valid), _number(high, valid)


def _bounds(text: str) -> tuple[float | None, float | None]:
    """One number is the upper bound, as in Flent."""
    valid = "LOW,HIGH with LOW below HIGH, HIGH alone, or `LOW,`"
    low, _, high = text.partition(",") if "," in text else ("", ",", text)
    ends = tuple(_number(one, valid) if one.strip() else None for one in (low, high))
    if ends == (None, None) or (ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]):
        raise ValueError(valid)
    return ends[0], ends[1]


def _cutoff(text: str) -> tuple[float, float]:
    """An end that is not above zero is counted from the end of the run."""
    valid = "BEGIN,END in seconds with BEGIN from 0 on, and END above BEGIN, or 0 or less: counted from the end of the run"
    begin, end = _pair(text, valid)
    if begin < 0 or 0 < end <= begin:
        raise ValueError(valid)
    return begin, end


def _percentiles(text: str) -> tuple[float, float]:
    valid = "LOW,HIGH, percentiles with 0 <= LOW < HIGH <= 100"
    low, high = _pair(text, valid)
    if not 0 <= low < high <= 100:
        raise ValueError(valid)
    return low, high


def _smoothing(text: str) -> int:
    valid = f"a whole number of samples from 2 to {MOST_SMOOTHING}"
    if not (text.isascii() and text.isdigit() and 2 <= int(text) <= MOST_SMOOTHING):
        raise ValueError(valid)
    return int(text)


def _factor(text: str) -> float:
    valid = "a number above zero"
    value = _number(text, valid)
    if value <= 0:
        raise ValueError(valid)
    return value


def _text(text: str) -> str:
    """One line that can be drawn."""
    if not text.strip() or not text.isprintable():
        raise ValueError("a line of text")
    return text


def _replacement(text: str) -> tuple[str, str]:
    old, equal, new = text.partition("=")
    if not old or not equal or not text.isprintable():
        raise ValueError("TEXT=REPLACEMENT; an empty replacement leaves the text out")
    return old, new


def _expression(text: str) -> str:
    try:
        re.compile(_text(text))
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


SETTINGS: tuple[Setting, ...] = (
    Setting("part", "part", str, "which part of the runs: whole, load or idle (default: that of the plot)", "PART", choices=PARTS),
    Setting("data-cutoff", "part", _cutoff, "only this time of the runs, in seconds; END of 0 or less: from the end", "BEGIN,END"),
    Setting("log", "log", str, "make this axis logarithmic: x or y", "AXIS", choices=LOGS),
    Setting("zero-y", "zero", _flag(True), "begin the y axis at zero; it is then not logarithmic"),
    Setting("no-zero-y", "zero", _flag(False), "let the y axis begin where the samples do"),
    Setting("bounds-x", "bounds_x", _bounds, "ends of the x axis; one number is the upper end, `LOW,` the lower one", "LOW,HIGH"),
    Setting("bounds-y", "bounds_y", _bounds, "ends of the y axis; one number is the upper end, `LOW,` the lower one", "LOW,HIGH"),
    Setting("scaling", "scaling", _percentiles, "the y axis of a plot over time has the samples between these percentiles", "LOW,HIGH"),
    Setting("own-axes", "same_axes", _flag(False), "runs beside each other and small panels: an axis of its own for each"),
    Setting("smoothing", "smooth", _smoothing, "draw the mean of so many samples of a series over time", "COUNT"),
    Setting("norm-factor", "norm", _factor, "divide all values by this number", "FACTOR"),
    Setting("absolute-time", "absolute_time", _flag(True), "several runs over time: each at its time of the day, from the first run on"),
    Setting("concatenate", "concatenate", _flag(True), "several runs over time: one after the other"),
    Setting("series", "only", _text, "only these series, by name, label or pattern with * and ?; may be given again", "PATTERN", many=True),
    Setting("filter-series", "drop", _text, "without these series; may be given again", "PATTERN", many=True),
    Setting("override-title", "title", _text, "title of the picture", "TITLE"),
    Setting("no-title", "title", _flag(""), "no title of the picture"),
    Setting("label-x", "label_x", _text, "name of the x axis; its unit stays", "LABEL"),
    Setting("label-y", "label_y", _text, "name of the left y axis; its unit stays", "LABEL"),
    Setting("no-legend", "legend", _flag(False), "do not show the names of the series"),
    Setting("override-label", "labels", _text, "label of the first run; again for the second, and so on", "LABEL", many=True),
    Setting("replace-legend", "relabel", _replacement, "replace text in the names of series; may be given again", "TEXT=NEW", many=True),
    Setting("override-group-by", "by", str, "which runs a plot combines: by name, batch, series, both or run", "GROUP", choices=GROUPS),
    Setting("filter-regexp", "drop_names", _expression, "leave this out of file names by which runs are grouped", "REGEXP", many=True),
    Setting("no-print-n", "count", _flag(False), "no number of runs in the label of a group"),
)  # fmt: skip


def texts(settings: Given) -> list[str]:
    """The words of a command line."""
    made = []
    for setting in SETTINGS:
        for text in settings.get(setting.name, ()):
            made.append(f"--{setting.name}={text}" if setting.metavar else f"--{setting.name}")
    return made
