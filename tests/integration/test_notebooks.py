"""The notebooks run from start to end, with the data folder and without, and are kept without outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
EXPLORE = PROJECT / "notebooks" / "explore_retrieval.ipynb"
CALIBRATE = PROJECT / "notebooks" / "calibrate_on_your_data.ipynb"
SECONDS = 60

pytestmark = pytest.mark.needs_extra("plots", "test")


def read(path: Path) -> Any:
    """A notebook, checked against its format."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A kernel that draws into the notebook and leaves the user's own Jupyter folders alone."""
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return monkeypatch


def execute(path: Path) -> list[Any]:
    """All outputs of a run in the project's root; a cell that fails raises, one that warns is refused."""
    from nbclient import NotebookClient

    notebook = read(path)
    place = {"metadata": {"path": str(PROJECT)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=place).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []
    return outputs


def printed(outputs: list[Any]) -> str:
    """Everything that the cells printed."""
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def pictures(outputs: list[Any]) -> Iterator[Any]:
    """The pictures that the cells left."""
    return (output for output in outputs if "image/png" in output.get("data", {}))


def assert_tells_the_three_apart(outputs: list[Any]) -> None:
    """One of each verdict, in the order of the cases; the contradiction is seen by the function alone."""
    out = printed(outputs)
    verdicts = re.findall(r"^(?:confident|off topic|contradictory) +([A-Z]+) ", out, re.MULTILINE)
    assert verdicts == ["ANSWER", "ABSTAIN", "ESCALATE"]
    assert re.search(
        r"without the function: (ANSWER|REVIEW|ABSTAIN), with it: ESCALATE\nsame confidence: True", out
    )
    assert len(list(pictures(outputs))) == 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    """Only sources are kept, so that a change shows as what was changed."""
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count is not None] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_code_cell_says_why(path: Path) -> None:
    """Text stands above each piece of code."""
    kinds = [cell.cell_type for cell in read(path).cells]
    assert [at for at, kind in enumerate(kinds) if kind == "code" and kinds[at - 1] != "markdown"] == []


@pytest.mark.needs_data
def test_exploring_with_real_data(environment: pytest.MonkeyPatch, data_dir: Path) -> None:
    """The real set is used, and the KPI ranks strange questions below those with an answer."""
    environment.setenv("RAG_CONFIDENCE_DATA", str(data_dir))
    outputs = execute(EXPLORE)
    assert_tells_the_three_apart(outputs)
    out = printed(outputs)
    assert "squad2 (minilm): 1216 passages" in out
    (above,) = re.findall(
        r"^(0\.\d+)  'on topic, answer there' above 'about something else'", out, re.MULTILINE
    )
    assert float(above) > 0.85


@pytest.mark.needs_extra("demo")
def test_exploring_without_data(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rules that the notebook writes stand in, embedded by wordllama."""
    environment.setenv("RAG_CONFIDENCE_DATA", str(tmp_path / "none"))
    outputs = execute(EXPLORE)
    assert_tells_the_three_apart(outputs)
    assert "library rules (wordllama): 24 passages" in printed(outputs)


def test_exploring_without_data_and_without_an_embedder(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Vectors of hashed words stand in where no embedder is installed."""
    (tmp_path / "wordllama.py").write_text('raise ModuleNotFoundError("hidden", name="wordllama")')
    environment.setenv("PYTHONPATH", str(tmp_path))
    environment.setenv("RAG_CONFIDENCE_DATA", str(tmp_path / "none"))
    outputs = execute(EXPLORE)
    assert_tells_the_three_apart(outputs)
    assert "library rules (hashed words): 24 passages" in printed(outputs)


def assert_calibrates(outputs: list[Any]) -> None:
    """Another embedder, used rows and a gate without its model are refused, and three artefacts come back."""
    out = printed(outputs)
    assert out.count("refused: `disjoint_from` must have been fitted on other rows") == 2
    assert "`profile` must be of the embedder" in out
    assert "got one for the model" in out
    assert "[True, True, True]" in out
    assert len(re.findall(r"^  (?:model|gate|guarantee): ", out, re.MULTILINE)) == 3
    assert len(list(pictures(outputs))) == 2


def test_calibrating_on_made_up_vectors(environment: pytest.MonkeyPatch) -> None:
    """Without a folder the model orders questions that it has not seen better than the best cosine does."""
    environment.delenv("RAG_CONFIDENCE_SET", raising=False)
    outputs = execute(CALIBRATE)
    assert_calibrates(outputs)
    found = dict(re.findall(r"^(best cosine|model) +AUROC (0\.\d+)$", printed(outputs), re.MULTILINE))
    assert float(found["model"]) > float(found["best cosine"]) + 0.1


@pytest.mark.needs_data
def test_calibrating_on_a_folder(environment: pytest.MonkeyPatch, data_dir: Path) -> None:
    """A labelled set on disk takes the place of the made-up vectors."""
    environment.setenv("RAG_CONFIDENCE_SET", str(data_dir / "clapnq"))
    outputs = execute(CALIBRATE)
    assert_calibrates(outputs)
    assert "clapnq (minilm): 906 passages, 600 questions" in printed(outputs)
