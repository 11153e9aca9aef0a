"""What scripts/ask.py refuses, and the sentences it prints."""

from __future__ import annotations

import sys
from pathlib import Path

import ask
import pytest
from _corpus import Corpus, Passage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one short text."""
    (tmp_path / "a.md").write_text("# A\nOne short text.")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["  "], "the question must hold at least one word; got an empty one."),
        (["q", "-k", "0"], "-k must be at least 1; got 0."),
        (["q", "-k", "-3"], "-k must be at least 1; got -3."),
        (["q", "--seed", "-1"], "--seed must be at least 0; got -1."),
        (["q", "--folder", "no/such/folder"], "--folder must be an existing folder; got no/such/folder."),
        (["q", "--folder", __file__], f"--folder must be an existing folder; got {__file__}."),
    ],
)
def test_what_cannot_be_asked_is_one_sentence_and_exit_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong argument is named with its value before anything is read."""
    assert ask.main(arguments) == 2
    assert capsys.readouterr() == ("", f"ask.py: {sentence}\n")


def test_an_unknown_option_exits_with_2() -> None:
    """argparse's own refusals have the same exit code."""
    with pytest.raises(SystemExit, match="2"):
        ask.main(["q", "-k", "many"])


def test_a_folder_without_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder is an error that says which files count, and which were skipped."""
    assert ask.main(["q", "--folder", str(tmp_path)]) == 2
    assert "must hold text in .md, .txt, .rst files; found none.\n" in capsys.readouterr().err
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\0")
    assert ask.main(["q", "--folder", str(tmp_path)]) == 2
    assert "Skipped as not readable UTF-8 text: 1 (binary.txt)." in capsys.readouterr().err


def test_a_missing_embedder_is_one_install_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without wordllama the exit code is 2 and the sentence says what to install."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert ask.main(["q", "--folder", str(folder)]) == 2
    assert capsys.readouterr().err == (
        "ask.py: `wordllama` is needed for the `demo` features; "
        "install it with: pip install 'rag-confidence[demo]'\n"
    )


@pytest.mark.needs_extra("demo")
def test_too_little_text_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder too small to fit a gate on is an error, not a guess."""
    assert ask.main(["q", "--folder", str(folder)]) == 2
    assert "at least 4 passages and 10 sentences" in capsys.readouterr().err


def test_skipped_files_are_counted_and_the_first_three_named() -> None:
    """The sentence is empty when nothing was skipped."""
    assert ask.skipped(Corpus((), 1, ())) == ""
    assert ask.skipped(Corpus((), 1, ("a", "b", "c", "d"))).endswith(": 4 (a, b, c, ...).")


def test_a_snippet_is_one_short_line() -> None:
    """Line breaks are joined and a long text is cut between words."""
    assert ask.snippet(Passage("a.md", "", "two\n lines")) == "two lines"
    long = ask.snippet(Passage("a.md", "", "word " * 200))
    assert len(long) <= ask.SNIPPET_CHARACTERS
    assert long.endswith("word...")


def test_the_default_is_the_projects_own_documents() -> None:
    """Without --folder the README and the docs are read."""
    assert "README.md" in {passage.source for passage in ask.read(None).passages}
