# SPDX-License-Identifier: MIT OR Apache-2.0
"""Errors of plots."""


class PlotError(Exception):
    """The plot does not exist, or the runs have nothing to draw in it. The text is one line."""


class SettingError(PlotError):
    """A setting of a picture is wrong, or does not fit the plot. The text begins with the name of the setting."""


class BuildError(PlotError):
    """A plot cannot be made from these runs."""
