# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by tests inside a device."""

from __future__ import annotations

import subprocess


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
