# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures of stored runs. `panels` makes the plot model from a run, purely; `figure` (matplotlib) and `report` (a page) draw just that."""
