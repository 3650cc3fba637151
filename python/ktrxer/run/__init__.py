# SPDX-License-Identifier: MIT OR Apache-2.0
"""A test in progress: what is checked before, the processes that measure, what they say, and what the whole is worth.

schedule.py  a plan as processes with times      checks.py     what would go wrong, before anything starts
active.py    a process and its output             watching.py   what shows a run while it happens
session.py   all of it together                  closing.py    one-way delays, losses by direction, the verdict (judge.py)
"""

from __future__ import annotations
