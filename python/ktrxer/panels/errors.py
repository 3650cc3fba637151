# SPDX-License-Identifier: MIT OR Apache-2.0
"""Errors of plots."""


class PlotError(Exception):
    """The plot does not exist, or the runs have nothing to draw in it. The text is one line."""


class BuildError(PlotError):
    """A plot cannot be made from these runs."""
