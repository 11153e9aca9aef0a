"""`_optional.require`: lazy import, or one sentence that says what to install."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rag_confidence._optional import require


def test_an_installed_module_is_returned() -> None:
    """A module that is there is imported and handed back, a dotted one too."""
    assert require("json", extra="topology") is json
    assert require("json.decoder", extra="topology") is json.decoder


def test_a_missing_module_names_the_extra_that_brings_it() -> None:
    """The one error is an ImportError whose sentence can be pasted into a shell."""
    with pytest.raises(ImportError) as caught:
        require("no_such_package_here", extra="topology")
    assert str(caught.value) == (
        "`no_such_package_here` is needed for the `topology` features; "
        "install it with: pip install 'rag-confidence[topology]'"
    )
    assert caught.value.name == "no_such_package_here"


def test_a_missing_submodule_of_a_missing_package_names_what_was_asked_for() -> None:
    """The sentence names the module that the caller wanted, not only its first part."""
    with pytest.raises(ImportError, match=r"`no_such_package_here\.part` is needed"):
        require("no_such_package_here.part", extra="plots")


def test_a_blocked_module_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests hide an installed package with `sys.modules[name] = None`; require then says the sentence."""
    monkeypatch.setitem(sys.modules, "ripser", None)
    with pytest.raises(ImportError, match=r"rag-confidence\[topology\]"):
        require("ripser", extra="topology")


def test_a_broken_package_keeps_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed but fails on a dependency of its own must not be called missing."""
    (tmp_path / "broken_package_here.py").write_text("import a_dependency_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_dependency_that_is_not_there"):
        require("broken_package_here", extra="topology")
