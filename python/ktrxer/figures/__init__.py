# SPDX-License-Identifier: MIT OR Apache-2.0
"""The headline figures of a run and their error bounds: the verdict (run/judge.py) and the summary need the same ones."""
