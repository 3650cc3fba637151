# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures from samples: pure functions over numpy arrays. Each says where its formula comes from."""
