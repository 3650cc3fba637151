# SPDX-License-Identifier: MIT OR Apache-2.0
"""Errors of the lab, with messages for users."""

from __future__ import annotations


class LabError(Exception):
    """The lab failed. The message states what failed, on which object, and what to do."""


class Unavailable(LabError):
    """This machine lacks a program that the lab needs. The message states how to install it."""


class MissingPackage(LabError):
    """Debian's archive has no package of this name."""


class GuestFailure(LabError):
    """The device itself failed: it panicked, hung, or ended without an answer."""

    def __init__(self, message: str, console: str = "", stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message)
        self.console = console
        self.stdout = stdout
        self.stderr = stderr


class TimeLimit(GuestFailure):
    """The hard limit on wall time ended the device."""


class BuildFailure(LabError):
    """A kernel module does not build. `log` is the output of make."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log
