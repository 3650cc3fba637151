# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plot model: from runs to panels of numbers and text, by pure functions, without a drawing library.

model       the dataclasses: panels, axes, series, rows of events
tracks      every series of a run under its Flent name
shapes      distributions, boxes, violins, bars with intervals, ellipses, heat maps
reduce      one number from a series; cut-offs, smoothing, limits without outliers
groups      runs that belong together, by name, batch or series
spec        a plot as data: what it selects, how it reduces and draws
build       from a specification and runs to panels
plots       plots by name
flent       the plots of Flent's tests as specifications
headline    the result of a run in words
order       the order of the panels of a report; panels without news are folded
"""
