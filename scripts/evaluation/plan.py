"""What a run measures: its parts, one for each set, embedder, k and family of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import rag_confidence
from evaluation.collection import has_embedder
from evaluation.strata import FAMILIES, Family, strangers
from rag_confidence import MetricPolicy

BUDGETS = (25, 50, 100, 200, 500)
MAIN_K = 10
MAIN_BUDGET = 200
"""Labels at which every score is compared with the learned ones, on the same rows."""

_HERE = Path(__file__).resolve().parent
# Pages and figures read the results; a change there measures nothing anew.
_PRESENTATION = frozenset(
    {"results.py", "targets.py", "tables.py", "pages.py", "words.py", "figures.py", "progress.py"}
)


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes
    ----------
    limit : int or None
        The most queries of a set; None for all.
    draws : int
        Draws of labels at each budget.
    rounds : int
        Bootstrap rounds of scores without labels.
    learned_rounds : int
        Bootstrap rounds of learned scores, at k = 10 only.
    sample, query_sample : int
        Vectors of the corpus and queries that a profile is fitted on.
    seed : int
    """

    limit: int | None
    draws: int
    rounds: int
    learned_rounds: int
    sample: int = 600
    query_sample: int = 300
    seed: int = 0


FULL = Effort(limit=None, draws=20, rounds=1000, learned_rounds=400)
QUICK = Effort(limit=1200, draws=5, rounds=200, learned_rounds=200)


@dataclass(frozen=True)
class Part:
    """One file of results: a set under an embedder, a k, a family of rows, and the sets on other subjects."""

    place: Path
    embedder: str
    k: int
    family: Family
    strangers: tuple[Path, ...]

    @property
    def label(self) -> str:
        """For progress, and the name of the file."""
        return f"{self.place.name} {self.embedder} k{self.k} {self.family.name}"


def parts(
    places: Sequence[Path], every: Sequence[Path], embedders: Sequence[str], ks: Sequence[int]
) -> Iterator[Part]:
    """The parts of the sets in `places`, those of the main k first.

    Topic gaps need a set on another subject under the same embedder; these are looked for in `every` set, so
    that the results of a set do not depend on which others are evaluated with it.
    """
    for k in sorted(ks, key=lambda one: (one != MAIN_K, one)):
        for place in places:
            for embedder in (name for name in embedders if has_embedder(place, name)):
                others = {other.name: other for other in every if has_embedder(other, embedder)}
                away = tuple(others[name] for name in strangers(place.name, sorted(others)))
                for family in FAMILIES:
                    if away or family.name != "gap":
                        yield Part(place, embedder, k, family, away)


def digest_of(place: Path, others: Sequence[Path], embedder: str, effort: Effort) -> str:
    """Hash of all that numbers about a set depend on: code, policy, effort, seed and input files.

    `others` are sets of which the queries are read.
    """
    digest = hashlib.sha256(_code_digest())
    digest.update(MetricPolicy().fingerprint.encode())
    digest.update(repr(sorted(asdict(effort).items())).encode())
    for path in _inputs(place, others, embedder):
        stat = path.stat()
        digest.update(f"{path.parent.name}/{path.name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


@cache
def _code_digest() -> bytes:
    """Of the code as it is when first asked: what is edited while a run lasts does not part its results."""
    package = Path(rag_confidence.__file__).parent
    here = [path for path in _HERE.glob("*.py") if path.name not in _PRESENTATION]
    digest = hashlib.sha256()
    for path in [*sorted(package.rglob("*.py")), *sorted(here), _HERE.parent / "_data.py"]:
        digest.update(path.read_bytes())
    return digest.digest()


def _inputs(place: Path, others: Sequence[Path], embedder: str) -> list[Path]:
    own = [path for path in place.rglob("*") if path.suffix in {".npz", ".jsonl", ".tsv", ".json"}]
    return sorted(own) + [other / f"emb_{embedder}.npz" for other in others]
