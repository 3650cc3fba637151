# SPDX-License-Identifier: MIT OR Apache-2.0
"""The shared library of the estimators (methods/estimate/shared.c), and how its functions are called."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

NAME = "ktrxer-estimators.so"
MISSING = -(1 << 63)  # in arrays of results
MOST = 64  # figures of a call
TEXT = 256  # bytes of the cause of an error

Result = TypeVar("Result")
Array = tuple[ctypes.c_void_p, ctypes.c_size_t]  # the pointer keeps the array


class Figure(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("number", ctypes.c_double), ("text", ctypes.c_char_p))


Found = list[tuple[str, float | str]]


class NoEstimatorsError(ImportError):
    """The library is not installed, or is that of an older version. One line."""


def places() -> list[Path]:
    package = Path(__file__).resolve().parents[1]
    # SOURCE/python/ktrxer, or PREFIX/share/ktrxer/python/ktrxer.
    prefixes = [package.parents[1] / "build", package.parents[3]]
    named = os.environ.get("KTRXER_BIN", "")  # BUILD/cli/ktrxer, or PREFIX/bin/ktrxer
    if named.startswith("/"):
        prefixes.insert(0, Path(named).resolve().parents[1])
    if on_path := shutil.which("ktrxer"):  # this package came by pip, without the compiled parts
        prefixes.append(Path(on_path).resolve().parents[1])
    return [folder for prefix in prefixes for folder in (prefix / "python" / NAME, prefix / "lib" / "ktrxer" / NAME)]


@functools.cache
def library() -> ctypes.CDLL:
    for place in places():
        if place.is_file():
            try:
                loaded = ctypes.CDLL(str(place))
            except OSError as error:
                raise NoEstimatorsError(f"{error}: build ktrxer with `make`, or install the package ktrxer-python") from None
            loaded.ktrxer_py_abw_new.restype = ctypes.c_void_p
            loaded.ktrxer_py_abw_free.restype = None
            return loaded
    looked_at = ", ".join(map(str, places()))
    raise NoEstimatorsError(f"no {NAME} ({looked_at}): build ktrxer with `make`, or install the package ktrxer-python")


def fail(code: int, text: str) -> None:
    if code == -errno.ENOMEM:
        raise MemoryError(text or "no memory for the estimate")
    raise ValueError(text or {-errno.EINVAL: "the sizes or times fit no estimate"}.get(code, os.strerror(-code)))


def function(name: str) -> Any:
    try:
        return getattr(library(), f"ktrxer_py_{name}")
    except AttributeError:
        place = library()._name
    raise NoEstimatorsError(f"{place} is of an older version, and has no estimator {name}: install one version of both parts of ktrxer")


def check() -> None:
    """A measurement calls it before its begin: NoEstimatorsError, if the figures of its end cannot be computed."""
    function("one_way")
    function("loss_directions")


def call(name: str, *arguments: Any, text: bool = False, most: int = MOST) -> Found:
    """The figures of a function. ValueError: its arguments allow no estimate. `text`: the function gives a cause."""
    to = (Figure * most)()
    cause = ctypes.create_string_buffer(TEXT)
    more = (cause, ctypes.c_size_t(TEXT)) if text else ()
    count = function(name)(*arguments, to, ctypes.c_int(most), *more)
    if count < 0:
        fail(count, cause.value.decode())
    return [(figure.name.decode(), figure.text.decode() if figure.text is not None else figure.number) for figure in to[:count]]


def count(name: str, *arguments: Any) -> int:
    """The result of a function that fills arrays."""
    made = int(function(name)(*arguments))
    if made < 0:
        fail(made, "")
    return made


def result(kind: type[Result], found: Found, **more: Any) -> Result:
    """A data class of the figures and of `more`; those that are missing have its defaults."""
    kinds = {field.name: str(field.type).split()[0] for field in fields(kind)}  # type: ignore[arg-type]
    converted = {"int": int, "bool": bool, "float": float, "str": str}
    return kind(**{name: converted[kinds[name]](value) for name, value in found}, **more)


def groups(found: Found, first: str) -> list[Found]:
    """The figures before the first one of this name, and then one list for each of this name."""
    parts: list[Found] = [[]]
    for name, value in found:
        if name == first:
            parts.append([])
        parts[-1].append((name, value))
    return parts


def numbers(values: npt.ArrayLike, dtype: type[np.uint64] | type[np.int64], width: int = 1) -> Array:
    """Pointer, and count of rows of so many numbers. Floating point has no place for nanoseconds of a clock, so it is refused."""
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"times are integer nanoseconds, not {given.dtype}")
    if given.size and dtype is np.uint64 and given.dtype.kind == "i" and given.min() < 0:
        raise ValueError("a time is negative")
    array = np.ascontiguousarray(given, dtype=dtype)
    return array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.size // width)


def pair_times(values: npt.ArrayLike) -> Array:
    """The rows of pairs, as numbers() gives them: sent first, sent second, arrived first, arrived second."""
    given = np.asarray(values)
    if given.size and (given.ndim != 2 or given.shape[1] != 4):
        raise ValueError(f"the times of pairs are rows of four (both send times, both arrivals), not an array of the shape {given.shape}")
    return numbers(given, np.uint64, width=4)


def uint32(value: int) -> ctypes.c_uint32:
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is not in 0 .. 2^32 - 1")
    return ctypes.c_uint32(value)
