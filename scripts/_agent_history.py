"""A labelled history of retrievals over a folder of text, made without anyone who labels.

Questions are beginnings of the folder's own sentences, so it is known which passage they are about. For half
of them, drawn by a seed, the whole file is left out of the search: the subject is there and the evidence is
not (a near miss). Everyday questions are topic gaps. This shows how a history is built; one from real users,
labelled by people, is what a gate should rest on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from _corpus import WORD, Passage, sentences
from _grounding import EVERYDAY_QUESTIONS
from _retrieval import Embedder, FloatArray, Hits
from numpy.typing import NDArray

from rag_confidence import MetricPolicy

IntArray: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = NDArray[np.str_]

SALT = 0xA6E27
MOST_QUESTIONS = 1000
LEAST_WORDS, MOST_WORDS = 8, 16
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Library:
    """Passages of a folder with their unit vectors (n, d), and what embeds a question the same way."""

    passages: tuple[Passage, ...]
    vectors: FloatArray
    embed: Embedder

    @cached_property
    def sources(self) -> Names:
        """The file of each passage."""
        return np.array([passage.source for passage in self.passages])

    def find(self, question: FloatArray, k: int, without: str = "") -> Hits:
        """The k passages nearest to a question (d,), those of one file left out."""
        cosines = np.where(self.sources == without, -np.inf, self.vectors @ question)
        rows = np.argsort(-cosines, kind="stable")[:k]
        return Hits(rows, cosines[rows])


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions of which it is known what they are about.

    `owners` is the row of the passage, -1 for questions that the folder is not about; `without` is the file
    that is left out of the search, empty for none.
    """

    texts: tuple[str, ...]
    vectors: FloatArray
    owners: IntArray
    without: Names

    def part(self, rows: IntArray) -> Asked:
        """Some of the questions."""
        texts = tuple(self.texts[row] for row in rows)
        return Asked(texts, self.vectors[rows], self.owners[rows], self.without[rows])

    def search(self, library: Library, k: int) -> list[Hits]:
        """What is found for each question."""
        asked = zip(self.vectors, self.without, strict=True)
        return [library.find(vector, k, without) for vector, without in asked]

    def labels(self, found: Sequence[Hits]) -> Mask:
        """Whether the passage that a question is about is among those found."""
        return np.array([owner in hits.rows for owner, hits in zip(self.owners, found, strict=True)])

    def kinds(self, labels: Mask) -> list[str | None]:
        """What kind of insufficient each row is; None for the sufficient ones."""
        kinds = np.where(self.without == "", "ranking_failure", "near_miss")
        kinds = np.where(self.owners == NOWHERE, "topic_gap", kinds)
        return [None if label else str(kind) for label, kind in zip(labels, kinds, strict=True)]


def ask_about(library: Library, seed: int) -> Asked:
    """Questions that the folder suggests, evenly spaced, and everyday questions."""
    suggested: dict[str, int] = {}
    for row, passage in enumerate(library.passages):
        for text in map(question_of, sentences(passage.text)):
            suggested.setdefault(text, row)
    suggested.pop("", None)
    step = max(1, -(-len(suggested) // MOST_QUESTIONS))
    texts = (*list(suggested)[::step], *EVERYDAY_QUESTIONS)
    owners = np.array([*list(suggested.values())[::step], *[NOWHERE] * len(EVERYDAY_QUESTIONS)])
    left_out = np.random.default_rng([SALT, seed]).random(len(texts)) < 0.5
    without = np.where(left_out & (owners != NOWHERE), library.sources[owners], "")
    return Asked(texts, library.embed(list(texts)), owners, without)


def question_of(sentence: str) -> str:
    """The first words of a sentence; empty for a row of a table, and when it is too short to ask about."""
    words = [] if "|" in sentence else WORD.findall(sentence)
    return " ".join(words[:MOST_WORDS]) if len(words) >= LEAST_WORDS else ""


def fit_policy(library: Library, asked: Asked, k: int) -> MetricPolicy:
    """A policy whose grounding gate fits these questions: no label is used."""
    cosines = np.array([hits.cosines for hits in asked.search(library, k)])
    about = asked.owners != NOWHERE
    return MetricPolicy.fit_grounding(cosines[about], cosines[~about])
