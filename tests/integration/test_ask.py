"""scripts/ask.py as a user runs it: in its own process, over a folder of text, without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_extra("demo")

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# Runs ask.py as a script; the first attempt to reach a network ends it with exit code 99.
OFFLINE = """
import os, runpy, sys
REFUSED = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}
sys.addaudithook(lambda event, _: os._exit(99) if event in REFUSED else None)
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""

HIVE = """# The hive

A beehive is a stack of wooden boxes. Each box holds ten frames of wax comb.
The queen lays her eggs in the lowest box, which beekeepers call the brood box.

## Inspecting the hive

Inspect the hive every seven to ten days between April and July. Choose a warm day without wind.
Blow a little smoke into the entrance before you lift the lid, so that the bees stay calm.
Look for eggs and young brood: they prove that the queen was there within the last three days.
Write down what you saw, so that the next inspection can be compared with it.

## Swarming

Bees swarm in early summer when the hive is too crowded. The old queen leaves with half of the workers.
Queen cells along the lower edge of the comb announce a swarm. Give the colony more room, or divide it.

## Winter

In winter the bees form a cluster around the queen and keep her warm. A colony needs fifteen kilograms of
honey to survive until spring. Do not open the hive in winter. Check its weight from outside.
"""

HONEY = """Harvesting honey
================

Honey is ripe when the bees have sealed the cells of the comb with wax. Take only sealed frames.
Brush the bees off the frames and carry them indoors before other bees notice the smell.

Extracting
----------

Cut the wax caps off the comb with a hot knife. Spin the frames in an extractor until the honey runs out.
Strain the honey through a fine sieve, let it rest for two days, and skim the foam off before filling jars.

Storing
-------

Store honey in closed jars in a dark and cool room. Honey takes up water from moist air and then ferments.
Crystals do not spoil it. Warm the jar gently in water and the honey becomes liquid again.
"""

MITES = """The varroa mite is the worst enemy of the honey bee. It feeds on the brood and carries viruses
into the colony.

Count the mites that fall on a board below the hive. More than ten mites a day in summer mean that the colony
must be treated.

Treat the bees with formic acid after the last honey harvest in August. Treat them with oxalic acid in
December, when the colony has no brood.

Drone brood attracts mites. Cutting out the sealed drone comb removes many of them without any acid.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three texts about beekeeping and one file that is not text."""
    root = tmp_path_factory.mktemp("bees")
    (root / "hive.md").write_text(HIVE)
    (root / "honey.rst").write_text(HONEY)
    (root / "pests").mkdir()
    (root / "pests" / "mites.txt").write_text(MITES)
    (root / "scan.txt").write_bytes(b"\x89PNG\xff\0")
    return root


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ask.py offline with warnings as errors; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE, str(SCRIPTS / "ask.py"), *arguments],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def verdict(question: str, folder: Path) -> str:
    """The verdict of ask.py --json."""
    return str(json.loads(run(question, "--folder", str(folder), "--json").stdout)["verdict"])


@pytest.mark.parametrize(
    "question",
    [
        "How much honey do the bees need to survive the winter?",
        "When are the bees treated against varroa mites?",
    ],
)
def test_a_question_about_the_folder_is_served(question: str, folder: Path) -> None:
    """A question that the text answers gets ANSWER or REVIEW."""
    assert verdict(question, folder) in {"ANSWER", "REVIEW"}


@pytest.mark.parametrize(
    "question",
    ["What were the football results on Saturday?", "Which graphics card should I buy for my computer?"],
)
def test_a_question_about_something_else_is_withheld(question: str, folder: Path) -> None:
    """A question that the text is not about gets ABSTAIN, and exit code 0."""
    assert verdict(question, folder) == "ABSTAIN"


def test_the_card_shows_passages_gate_explanation_and_json(folder: Path) -> None:
    """Everything a reader needs is on stdout, in this order, and the JSON part parses."""
    question = "How often should I inspect the hive?"
    out = run(question, "--folder", str(folder), "-k", "3").stdout
    read, found, explained, record = (part.partition("\n")[2] for part in out.split("== ")[1:])
    assert "from 3 files. Skipped as not readable UTF-8 text: 1 (scan.txt)." in read
    assert "Grounding gate: fitted to this text without labels, centre 0." in read
    assert "everyday questions" in read
    assert "hive.md: The hive > Inspecting the hive" in found
    assert "Inspect the hive every seven to ten days" in found
    assert len(found.strip().splitlines()) == 2 * 3
    assert "topical grounding" in explained
    assert "points lost, each signal alone: " in explained
    assert json.loads(record)["k_returned"] == 3


def test_json_leaves_stdout_to_the_record(folder: Path) -> None:
    """With --json what was done goes to stderr, and more passages than there are is no error."""
    done = run("How is honey stored?", "--folder", str(folder), "--json", "-k", "1000")
    record = json.loads(done.stdout)
    assert 0.0 <= record["kpi"] <= 1.0
    assert "Grounding gate: fitted" in done.stderr
    assert record["k_returned"] < record["k_requested"] == 1000


def test_the_same_question_gives_the_same_record(folder: Path) -> None:
    """Two processes with one seed print the same bytes, here for a single passage."""
    arguments = ("How is honey stored?", "--folder", str(folder), "--json", "-k", "1", "--seed", "7")
    record = run(*arguments).stdout
    assert json.loads(record)["k_returned"] == 1
    assert run(*arguments).stdout == record


def test_a_console_without_unicode_is_no_error(folder: Path) -> None:
    """A question that the console cannot show is printed with replacements."""
    assert "Explained" in run("Wie viel Honig? 字", "--folder", str(folder), PYTHONIOENCODING="ascii").stdout


def test_the_projects_own_documents_are_the_default() -> None:
    """Without a folder the project's documents are searched."""
    found = run("How do I install it and ask a question?").stdout.split("== ")[2]
    assert "README.md" in found or "docs/" in found
