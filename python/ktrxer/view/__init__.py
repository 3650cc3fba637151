# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots of stored runs. `panels` computes the plot model from a run without side effects; `figure` (matplotlib) and `report` (HTML) draw
that model."""
