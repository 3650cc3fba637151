# SPDX-License-Identifier: MIT OR Apache-2.0
"""Estimators: pure functions on numpy arrays. Each docstring names the source of its formula."""
