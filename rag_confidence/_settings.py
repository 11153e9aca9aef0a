"""Options of one call, checked once: `Settings` hold for all its queries, `Asked` for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import GroupName, check_group, check_groups
from rag_confidence._inputs import Batch
from rag_confidence._options import (
    check_callable,
    check_candidates,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_parents,
    check_text,
    check_texts,
    entries_of,
)
from rag_confidence._predictions import Gate, Model
from rag_confidence._types import Backend, FloatArray, IntArray, InvalidRows, LoopTest, Provenance
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.relevance import DUPLICATE_COSINE
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.product.policy import DEFAULT_POLICY, MetricPolicy


@dataclass(frozen=True)
class Settings:
    """What holds for every query of a call; see `score` for the meanings. Checked when built."""

    policy: MetricPolicy = DEFAULT_POLICY
    calibrator: Callable[[float], float] | None = None
    perturb: bool = True
    contradiction: Callable[[list[str]], Any] | None = None
    profile: CorpusProfile | None = None
    model: Model | None = None
    gate: Gate | None = None
    embedder: str | None = None
    embedding_backend: Backend = "precomputed"
    invalid_rows: InvalidRows = "raise"
    duplicate_cosine: float = DUPLICATE_COSINE
    loops: LoopTest = "off"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.policy, MetricPolicy):
            raise TypeError(f"`policy` must be a MetricPolicy; got {type(self.policy).__name__}. Build one.")
        check_callable("calibrator", self.calibrator)
        check_callable("contradiction", self.contradiction)
        check_text("embedder", self.embedder)
        check_choice("embedding_backend", self.embedding_backend, get_args(Backend))
        check_choice("invalid_rows", self.invalid_rows, get_args(InvalidRows))
        check_choice("loops", self.loops, get_args(LoopTest))
        limit = check_number("duplicate_cosine", self.duplicate_cosine, 0.0, 1.0, "0.995 is the default.")
        object.__setattr__(self, "duplicate_cosine", limit)
        object.__setattr__(self, "perturb", check_flag("perturb", self.perturb))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, 0))
        if self.profile is not None:
            self._adopt(self.profile)
        if self.calibrator is not None:
            _check_calibrator(self.calibrator, self.provenance)
        if self.model is not None:
            self._check_model(self.model)
        if self.gate is not None:
            _check_gate(self.gate, self.provenance, self.model)

    def _adopt(self, profile: Any) -> None:
        """Refuse what is no profile for this call; the embedder is that of the profile unless it is named."""
        if not isinstance(profile, CorpusProfile):
            raise TypeError(
                f"`profile` must be a CorpusProfile; got {type(profile).__name__}. "
                "Use CorpusProfile.fit or CorpusProfile.load."
            )
        if self.policy.definitions == "seed":
            raise ValueError(
                "`profile` must be left out with MetricPolicy.seed(); got one. The seed's formulas know no "
                "corpus: use the default policy."
            )
        if self.embedder is None:
            object.__setattr__(self, "embedder", profile.embedder)

    def _check_model(self, model: Any) -> None:
        if self.calibrator is not None:
            raise ValueError(
                "`calibrator` must be left out with a `model`; got both. Each gives p_sufficient: pass one."
            )
        if isinstance(model, type) or not hasattr(model, "predict_columns"):
            raise TypeError(
                f"`model` must be a fitted ConfidenceModel; got {type(model).__name__}. "
                "Use ConfidenceModel.fit or ConfidenceModel.load."
            )
        if model.provenance is not None:
            _check_provenance("model", replace(model.provenance, model=None), self.provenance)

    def check_group(self, group: Any) -> None:
        """Refuse a group that no gate would read."""
        if group is not None and self.gate is None:
            raise ValueError("`group` must be left out without a gate; got one. Pass gate=, or drop it.")

    @property
    def provenance(self) -> Provenance:
        """How the KPIs of this call are made."""
        profile = None if self.profile is None else self.profile.fingerprint
        return Provenance.of_kpi(self.policy.fingerprint, self.embedder, self.embedding_backend, profile)

    @property
    def policy_read(self) -> MetricPolicy:
        """The policy with the weights and floors that count in this call."""
        return self.policy if self.profile is None else self.policy.profiled

    @property
    def score_used(self) -> Literal["kpi", "model"]:
        """What the gate sees: the probability of the model that its provenance names, else the KPI."""
        made = None if self.gate is None else self.gate.provenance
        return "kpi" if made is None or made.model is None else "model"


def _check_calibrator(calibrator: Any, provenance: Provenance) -> None:
    """Refuse a probability map of percentages, which would clip every KPI, or of scores made otherwise."""
    made = getattr(calibrator, "provenance", None)
    _check_provenance("calibrator", made if isinstance(made, Provenance) else None, provenance)
    _check_range("calibrator", getattr(getattr(calibrator, "rows", None), "score_range", None))


def _check_gate(gate: Gate, provenance: Provenance, model: Model | None) -> None:
    """Refuse what is no gate, and a gate for scores that were made in another way."""
    if isinstance(gate, type) or not hasattr(gate, "predict_one") or not hasattr(gate, "score_range"):
        raise TypeError(
            f"`gate` must be a fitted gate; got {type(gate).__name__}. "
            "Pass what fit_conformal_gate returned, or load() it."
        )
    _check_range("gate", gate.score_range)
    made = gate.provenance
    seen = replace(provenance, model=model.fingerprint) if made and made.model and model else provenance
    _check_provenance("gate", made, seen)


def _check_range(name: str, fitted: tuple[float, float] | None) -> None:
    """Refuse what was fitted on scores that no KPI can be: percentages, distances, logits."""
    if fitted is None or (fitted[0] >= 0.0 and fitted[1] <= 1.0):
        return
    looks = "look like percentages" if fitted[0] >= 0.0 and fitted[1] <= 100.0 else "are on another scale"
    raise CalibrationMismatch(
        f"`{name}` must be fitted on KPIs in [0, 1]; got one for scores from {fitted[0]:g} to {fitted[1]:g}, "
        f"which {looks}. Fit it on `kpi`, not on `retrieval_confidence` or another score."
    )


def _check_provenance(name: str, fitted: Provenance | None, here: Provenance) -> None:
    if fitted is None or fitted == here:
        return
    wanted, found = fitted.to_dict(), here.to_dict()
    for key, cure in _CURES.items():
        if wanted[key] != found[key]:
            raise CalibrationMismatch(
                f"`{name}` must be fitted on KPIs made as in this call; got one for the {key} "
                f"{wanted[key]!r} where this call has {found[key]!r}. {cure}"
            )


_CURES = {
    "policy": "Pass the same policy=, or fit it again.",
    "profile": "Pass the same profile=, or fit it again.",
    "model": "Pass the same model=, or fit it again.",
    "embedder": "Pass the same embedder=, or fit it again: other vectors make other scores.",
}


@dataclass(frozen=True)
class Asked:
    """What single queries of a call came with, by their position."""

    texts: Mapping[int, tuple[str, ...]]
    parents: Mapping[int, IntArray]
    candidates: Mapping[int, FloatArray]
    questions: Mapping[int, str]
    k_requested: Sequence[int | None]
    groups: Sequence[GroupName] | None
    is_batch: bool

    def name(self, argument: str, row: int) -> str:
        """What error messages call the entry of `argument` for one query."""
        return f"{argument}[{row}]" if self.is_batch else argument

    @classmethod
    def of_one(
        cls,
        batch: Batch,
        texts: Sequence[str] | None,
        parents: Sequence[int | None] | None,
        candidates: ArrayLike | None,
        question: str | None,
        k_requested: int | None,
        group: GroupName | None = None,
    ) -> Asked:
        """From the arguments of `score`."""
        return cls(
            texts=_by_position([texts], lambda i, t: check_texts("texts", t, int(batch.k_returned[i]))),
            parents=_by_position([parents], lambda i, p: _tree("parents", p, batch, i)),
            candidates=_by_position(
                [candidates], lambda i, c: check_candidates("candidates", c, batch.dropped(i))
            ),
            questions=_by_position([question], lambda i, q: _question("query_text", q)),
            k_requested=[_requested("k_requested", k_requested)],
            groups=None if group is None else [check_group("group", group)],
            is_batch=False,
        )

    @classmethod
    def of_many(
        cls,
        batch: Batch,
        texts: Sequence[Sequence[str] | None] | None,
        parents: Sequence[Sequence[int | None] | None] | None,
        candidates: ArrayLike | Sequence[ArrayLike | None] | None,
        questions: Sequence[str | None] | None,
        k_requested: int | Sequence[int | None] | IntArray | None,
        group: GroupName | Sequence[GroupName] | None = None,
    ) -> Asked:
        """From the arguments of `score_many`: one entry a query, None where it has none."""
        count = len(batch)
        wanted: Any = k_requested
        if isinstance(k_requested, (int, np.integer)) or k_requested is None:
            wanted = [k_requested] * count
        _check_length("k_requested", wanted, count)
        for name, entries in (
            ("texts", texts),
            ("parents", parents),
            ("candidates", candidates),
            ("query_text", questions),
        ):
            _check_length(name, entries, count)
        return cls(
            texts=_by_position(texts, lambda i, t: check_texts(f"texts[{i}]", t, int(batch.k_returned[i]))),
            parents=_by_position(parents, lambda i, p: _tree(f"parents[{i}]", p, batch, i)),
            candidates=_by_position(
                candidates, lambda i, c: check_candidates(f"candidates[{i}]", c, batch.dropped(i))
            ),
            questions=_by_position(questions, lambda i, q: _question(f"query_text[{i}]", q)),
            k_requested=[_requested("k_requested", k) for k in wanted],
            groups=_groups(group, count),
            is_batch=True,
        )


def _groups(group: GroupName | Sequence[GroupName] | None, count: int) -> Sequence[GroupName] | None:
    """One group a query: one name holds for all of them."""
    if group is None:
        return None
    if isinstance(group, (str, int, np.integer)):
        return [check_group("group", group)] * count
    _check_length("group", group, count)
    names: list[GroupName] = check_groups("group", group).tolist()
    return names


def _by_position(entries: Any, check: Callable[[int, Any], Any]) -> dict[int, Any]:
    if entries is None:
        return {}
    return {i: check(i, entry) for i, entry in enumerate(entries) if entry is not None}


def _check_length(name: str, entries: Any, count: int) -> None:
    if entries is None:
        return
    if isinstance(entries, str) or not hasattr(entries, "__len__") or getattr(entries, "ndim", 1) == 0:
        raise TypeError(f"`{name}` must have one entry a query; got {type(entries).__name__}. Pass a list.")
    if len(entries) != count:
        raise ValueError(
            f"`{name}` must have one entry for each of the {count} queries; got {len(entries)}. "
            "Use None for queries without one."
        )


def _tree(name: str, parents: Sequence[int | None], batch: Batch, row: int) -> IntArray:
    if batch.n_dropped[row]:
        raise ValueError(
            f"`{name}` must be left out when passages are dropped; got {batch.n_dropped[row]} invalid rows. "
            "Embed these passages again."
        )
    if (
        batch.no_passages[row]
        and entries_of(name, parents, "a list of parent indices", "Give the root None.") == ()
    ):
        return check_parents(name, [None], 1)
    return check_parents(name, parents, int(batch.k_returned[row]))


def _question(name: str, question: str) -> str:
    check_text(name, question)
    return question


def _requested(name: str, k: int | None) -> int | None:
    return None if k is None else check_integer(name, k, 1)
