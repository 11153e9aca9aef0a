"""Make the helper modules of scripts/ importable, as they are for a script that runs there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
