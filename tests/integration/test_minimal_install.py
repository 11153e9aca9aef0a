"""The frozen contract on a machine that has only the three core dependencies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONTRACT = Path(__file__).resolve().parents[1] / "test_score_api.py"

BARE = """
import runpy, sys

class OnlyCore:
    hidden = {hidden!r}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, OnlyCore())
runpy.run_path({script!r}, run_name="__main__")
"""
HIDDEN = (
    "ripser",
    "persim",
    "gudhi",
    "matplotlib",
    "sklearn",
    "pandas",
    "wordllama",
    "pytest",
    "hypothesis",
    "jsonschema",
)


def test_the_contract_holds_with_the_core_dependencies_alone() -> None:
    """`python tests/test_score_api.py` passes where no extra, no pytest and no hypothesis can be imported."""
    code = BARE.format(hidden=HIDDEN, script=str(CONTRACT))
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed, 0 failed" in run.stdout
