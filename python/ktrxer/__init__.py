"""ktrxer: the experiment floor, the lab and the viewer. The transceiver and the methods are the C command's."""

from __future__ import annotations

__version__ = "0.1.0"
