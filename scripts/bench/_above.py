"""Importing this puts scripts/ on the path: the benchmarks share its modules."""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]

if str(SCRIPTS) not in sys.path:
    sys.path.append(str(SCRIPTS))
