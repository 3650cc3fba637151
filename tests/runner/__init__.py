# SPDX-License-Identifier: MIT OR Apache-2.0
"""The suites of tests/run, a module for each means that runs tests."""
