"""The log that a diagnosis looks at: checked records as columns, in an order of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_aligned, check_labels
from rag_confidence._types import FloatArray, IntArray, Mask, Signal
from rag_confidence.learning.reading import Metrics, Record, columns_of, names_of, records_of, words_of

PREFIX = "signals."
COUNTS = (
    "k_requested",
    "k_returned",
    "effective_k",
    "evidence.n_shape",
    "evidence.n_dropped_rows",
    "evidence.contradiction_loops",
)
WORDS = (
    "schema_version",
    "policy_fingerprint",
    "profile_fingerprint",
    "model_fingerprint",
    "gate_fingerprint",
    "embedder",
    "evidence.embedding_backend",
    "verdict",
    "policy_verdict",
    "reason_code",
    "decision",
)
WEIGHTS = tuple(f"weights.{signal}" for signal in Signal if signal is not Signal.TOPICAL_GROUNDING)


@dataclass(frozen=True, eq=False)
class Log:
    """Columns of n retrievals, and their labels if there are any.

    Attributes
    ----------
    kpi : ndarray, shape (n,)
    signals : dict of str to ndarray, shape (n,)
        Every `signals.*` key, without the prefix; nan where not assessed.
    counts, weights : dict of str to ndarray, shape (n,)
        Other numbers by their key.
    words : dict of str to ndarray of object, shape (n,)
        Texts by their key; None where null.
    labels : ndarray of bool, shape (n,), or None
    scored : ndarray of bool, shape (n,)
        Retrievals with passages and a usable query: those of which anything was measured.
    """

    kpi: FloatArray
    signals: dict[str, FloatArray]
    counts: dict[str, FloatArray]
    weights: dict[str, FloatArray]
    words: dict[str, np.ndarray]
    labels: Mask | None
    scored: Mask

    @property
    def n(self) -> int:
        """Retrievals in all."""
        return len(self.kpi)

    @property
    def profiled(self) -> bool:
        """Whether most retrievals were scored with a corpus profile."""
        return 2 * sum(word is not None for word in self.words["profile_fingerprint"]) > self.n

    def tally(self, key: str, where: Mask | None = None) -> list[tuple[str | None, int]]:
        """Words under a key with their counts, the most frequent first."""
        words = self.words[key] if where is None else self.words[key][where]
        return sorted(Counter(words.tolist()).items(), key=lambda pair: (-pair[1], str(pair[0])))

    def evidence_rows(self) -> tuple[FloatArray, dict[str, FloatArray], Mask | None]:
        """KPI, signals and labels of the scored retrievals."""
        at = self.scored
        labels = None if self.labels is None else self.labels[at]
        return self.kpi[at], {name: column[at] for name, column in self.signals.items()}, labels


def read_log(metrics: Metrics, labels: ArrayLike | None) -> Log:
    """The log of checked `metrics` and `labels`.

    Raises
    ------
    TypeError, ValueError
        As `records_of`, `columns_of` and `check_labels`; also for labels of another length.
    """
    records = records_of(metrics)
    given = None if labels is None else _labels(records, labels)
    names = names_of(records, PREFIX)
    if not names:
        raise ValueError(
            "`metrics` must have `signals.*` keys; got records with none. Pass unchanged to_dict() records."
        )
    numbers = columns_of(records, ("kpi", *names, *COUNTS, *WEIGHTS))
    order = _order([*numbers.values(), *([] if given is None else [given.astype(float)])])
    numbers = {name: column[order] for name, column in numbers.items()}
    signals = {name.removeprefix(PREFIX): numbers[name] for name in names}
    return Log(
        kpi=numbers["kpi"],
        signals=signals,
        counts={name: numbers[name] for name in COUNTS},
        weights={name: numbers[name] for name in WEIGHTS},
        words={name: _objects(words_of(records, name))[order] for name in WORDS},
        labels=None if given is None else given[order],
        scored=np.asarray(~np.isnan(np.stack([*signals.values()])).all(axis=0)),
    )


def _labels(records: tuple[Record, ...], labels: ArrayLike) -> Mask:
    check_aligned(metrics=records, labels=labels)
    return check_labels("labels", labels)


def _order(columns: list[FloatArray]) -> IntArray:
    """Rows in the order of their numbers: sums then round alike however the log was ordered."""
    return np.asarray(np.lexsort(columns[::-1]))


def _objects(words: Sequence[str | None]) -> np.ndarray:
    array = np.empty(len(words), dtype=object)
    array[:] = words
    return array
