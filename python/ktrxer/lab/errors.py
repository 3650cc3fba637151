# SPDX-License-Identifier: MIT OR Apache-2.0
"""What can go wrong in the lab, in sentences for the person who reads them."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not do its job: the message says what, where and what now."""


class Unavailable(LabError):
    """This machine lacks a program that the lab needs; the message says how to get it."""


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
    """A kernel module does not build; the log is make's."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log
