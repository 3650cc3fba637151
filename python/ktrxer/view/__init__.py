# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws the plot model of `ktrxer.panels`: `figure` on paper (matplotlib), `report` as a page (HTML), `text` in a terminal."""
