# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations

from ktrxer.cli import main

raise SystemExit(main())
