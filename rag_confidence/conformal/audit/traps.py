"""Lexical traps: high scores on evidence that was labelled insufficient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_aligned, check_fractions, check_history
from rag_confidence._options import check_choice, check_number, entries_of
from rag_confidence._types import FloatArray, IntArray
from rag_confidence.conformal.audit.overlap import word_overlap

Name: TypeAlias = str | int


@dataclass(frozen=True)
class LexicalTrap:
    """One insufficient row that a threshold would accept.

    Attributes
    ----------
    rank : int
        1 for the highest score; rows of equal score keep the order they came in.
    row : int
        Its place in the input, from 0.
    score : float
        Its score.
    item_id : str, int or None
        Its name, if names were given.
    query, passage : str or None
        Its texts, if they were given.
    word_overlap : float or None
        Share of the query's content words found in the passage, in [0, 1]: high supports that the score
        rests on wording. None without both texts, or for a query without words.
    """

    rank: int
    row: int
    score: float
    item_id: Name | None
    query: str | None
    passage: str | None
    word_overlap: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class LexicalTraps:
    """What `find_lexical_traps` found, highest score first.

    Attributes
    ----------
    threshold : float
        Scores of at least this are accepted.
    traps : tuple of LexicalTrap
        Accepted rows with label 0.
    n, n_insufficient, n_accepted : int
        Rows in all, with label 0, and with a score at or above the threshold.
    share_of_insufficient : float or None
        Traps among the insufficient rows, in [0, 1]: the false-sufficiency rate of the threshold. Low is
        good; None without insufficient rows.
    share_of_accepted : float or None
        Traps among the accepted rows, in [0, 1]: its selective risk. Low is good; None if none is accepted.
    mean_word_overlap : float or None
        Mean over the traps that have one.
    summary : str
        All of it in a sentence or two.
    """

    threshold: float
    traps: tuple[LexicalTrap, ...]
    n: int
    n_insufficient: int
    n_accepted: int
    share_of_insufficient: float | None
    share_of_accepted: float | None
    mean_word_overlap: float | None
    summary: str

    def __len__(self) -> int:
        return len(self.traps)

    def __repr__(self) -> str:
        return f"LexicalTraps({len(self)} of {self.n} rows at threshold {self.threshold:g}: {self.summary})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**vars(self), "traps": [trap.to_dict() for trap in self.traps]}


@dataclass(frozen=True)
class _Texts:
    """What was given beside the scores, one entry a row."""

    item_ids: tuple[Name, ...] | None
    queries: tuple[str, ...] | None
    passages: tuple[str, ...] | None


def find_lexical_traps(
    scores: ArrayLike,
    labels: ArrayLike,
    threshold: float = 0.70,
    item_ids: Sequence[Name] | ArrayLike | None = None,
    queries: Sequence[str] | ArrayLike | None = None,
    passages: Sequence[str] | ArrayLike | None = None,
    *,
    score_kind: Literal["fraction", "raw"] = "fraction",
) -> LexicalTraps:
    """Rows that a threshold accepts although their evidence is insufficient, highest score first.

    These are the rows to read: passages that look like the answer, in wording or in topic, and are not.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Scores, n >= 1; higher means more likely sufficient.
    labels : array_like, shape (n,)
        1 (sufficient) or 0 (insufficient).
    threshold : float, default 0.70
        Scores of at least this are accepted.
    item_ids : sequence of str or int, optional
        Names of the rows, one each.
    queries, passages : sequence of str, optional
        Texts of the rows, one each. With both of them every trap carries its word overlap.
    score_kind : {"fraction", "raw"}, default "fraction"
        "fraction" takes scores and a threshold in [0, 1] and refuses others; "raw" takes any scale.

    Returns
    -------
    LexicalTraps
        The traps, how large a share they are of the insufficient and of the accepted rows, and a summary.
        Without traps the tuple is empty.

    Raises
    ------
    ValueError, TypeError
        When an argument is not what is described above, or columns differ in length or in their index.

    Notes
    -----
    A trap is a row with score >= threshold and label 0; a float threshold is compared in the precision of
    the scores. That a trap is lexical is a conjecture: word overlap supports it and proves nothing, and
    without texts the score alone speaks. O(n) plus sorting the traps.

    Examples
    --------
    >>> found = find_lexical_traps([0.9, 0.8, 0.2], [0, 1, 0], item_ids=["old report", "answer", "other"])
    >>> found.traps[0].item_id, found.share_of_insufficient, found.share_of_accepted
    ('old report', 0.5, 0.5)
    """
    check_aligned(scores=scores, labels=labels, item_ids=item_ids, queries=queries, passages=passages)
    values, sufficient = check_history(scores, labels)
    cut = _check_scale(values, threshold, score_kind)
    texts = _Texts(_names("item_ids", item_ids), _strings("queries", queries), _strings("passages", passages))
    accepted = values >= cut
    rows = np.flatnonzero(accepted & ~sufficient)
    ordered = rows[np.argsort(-values[rows], kind="stable")]
    traps = _traps(ordered, values, texts)
    counts = (len(values), int((~sufficient).sum()), int(accepted.sum()))
    return _result(cut, traps, counts)


def _check_scale(scores: FloatArray, threshold: float, score_kind: str) -> float:
    check_choice("score_kind", score_kind, ("fraction", "raw"))
    cure = "Scores of at least this are accepted; pass score_kind='raw' for another scale."
    if score_kind == "raw":
        # It is compared in the precision of the scores, so it must fit into that.
        largest = float(np.finfo(scores.dtype).max)
        return check_number("threshold", threshold, -largest, largest, cure)
    check_fractions("scores", scores, "Pass score_kind='raw' and a threshold on the scale of the scores.")
    return check_number("threshold", threshold, 0.0, 1.0, cure)


def _names(name: str, entries: Sequence[Name] | ArrayLike | None) -> tuple[Name, ...] | None:
    if entries is None:
        return None
    listed = entries_of(name, entries, "a list of strings or integers", "Name every row.")
    return tuple(_name(f"{name}[{row}]", entry) for row, entry in enumerate(listed))


def _name(name: str, entry: Any) -> Name:
    if isinstance(entry, str):
        return str(entry)
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_)):
        return int(entry)
    raise TypeError(f"`{name}` must be a string or an integer; got {entry!r}. Name every row.")


def _strings(name: str, entries: Sequence[str] | ArrayLike | None) -> tuple[str, ...] | None:
    if entries is None:
        return None
    texts = entries_of(name, entries, "a list of strings", "Pass one string a row.")
    odd = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if odd is not None:
        raise TypeError(
            f"`{name}[{odd}]` must be a string; got {texts[odd]!r}. Pass '' for a row without a text."
        )
    return tuple(str(text) for text in texts)


def _traps(rows: IntArray, scores: FloatArray, texts: _Texts) -> tuple[LexicalTrap, ...]:
    return tuple(
        _trap(rank, row, float(scores[row]), texts) for rank, row in enumerate(rows.tolist(), start=1)
    )


def _trap(rank: int, row: int, score: float, texts: _Texts) -> LexicalTrap:
    item_id = None if texts.item_ids is None else texts.item_ids[row]
    query = None if texts.queries is None else texts.queries[row]
    passage = None if texts.passages is None else texts.passages[row]
    shared = None if query is None or passage is None else word_overlap(query, passage)
    return LexicalTrap(rank, row, score, item_id, query, passage, shared)


def _result(threshold: float, traps: tuple[LexicalTrap, ...], counts: tuple[int, int, int]) -> LexicalTraps:
    n, insufficient, accepted = counts
    overlaps = [trap.word_overlap for trap in traps if trap.word_overlap is not None]
    mean = math.fsum(overlaps) / len(overlaps) if overlaps else None
    return LexicalTraps(
        threshold=threshold,
        traps=traps,
        n=n,
        n_insufficient=insufficient,
        n_accepted=accepted,
        share_of_insufficient=len(traps) / insufficient if insufficient else None,
        share_of_accepted=len(traps) / accepted if accepted else None,
        mean_word_overlap=mean,
        summary=_summary(threshold, len(traps), (insufficient, accepted), mean),
    )


def _summary(threshold: float, count: int, among: tuple[int, int], overlap: float | None) -> str:
    insufficient, accepted = among
    if not insufficient:
        return f"No row is insufficient, so none can be a trap at the threshold {threshold:g}."
    if not count:
        return f"None of the {insufficient} insufficient rows reaches the threshold {threshold:g}."
    shares = (
        f"{count} of the {insufficient} insufficient rows ({100 * count / insufficient:.1f} %) "
        f"{'reaches' if count == 1 else 'reach'} the threshold {threshold:g}; of the {accepted} rows "
        f"accepted there {count} ({100 * count / accepted:.1f} %) {'is' if count == 1 else 'are'} "
        "insufficient."
    )
    if overlap is None:
        return shares
    return f"{shares} On average their passages hold {100 * overlap:.0f} % of the content words of the query."
