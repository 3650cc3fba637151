# SPDX-License-Identifier: MIT OR Apache-2.0
"""The words for how a picture shows its runs. Nothing is imported here, because the parsers of commands need only these."""

from __future__ import annotations

from typing import Literal, get_args

# overlay    the runs over each other
# beside     panels of their own for each run, with the same axes
# by-name    runs whose file names differ only in a number, as one
# by-batch   runs of a batch, as one
# all        all runs as one
Arrange = Literal["overlay", "beside", "by-name", "by-batch", "all"]
ARRANGES: tuple[Arrange, ...] = get_args(Arrange)
WORDS: dict[Arrange, str] = {
    "overlay": "over each other",
    "beside": "beside each other",
    "by-name": "as one: names that differ in a number",
    "by-batch": "as one: runs of a batch",
    "all": "as one: all",
}
