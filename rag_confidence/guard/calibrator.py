"""Calibrator: the threshold on how strange a call may be, and the decision that follows from it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from rag_confidence import _artefact
from rag_confidence._calls import ToolCallContext, check_named_scores
from rag_confidence._history import GroupName
from rag_confidence._types import FloatArray, Guarantee
from rag_confidence.conformal.history import History
from rag_confidence.conformal.joint.check_scale import blind_note
from rag_confidence.conformal.joint.traffic import TrafficRanks
from rag_confidence.conformal.proportion import Proportion, proportion_of
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.guard import saving
from rag_confidence.guard.deciding import decider_of
from rag_confidence.guard.guarantee import Basis, guarantee_of
from rag_confidence.guard.judging import Rule, of_other_tool, rule_of
from rag_confidence.guard.notes import Note, notes_of_levels
from rag_confidence.guard.result import GuardResult
from rag_confidence.guard.scorers import ScoreFunction, Scorer, as_scorers
from rag_confidence.guard.scoring import ascore_all
from rag_confidence.guard.thresholds import Thresholds, count_failed, thresholds_of


@dataclass(frozen=True, eq=False, repr=False)
class Calibrator:
    """Accepts calls that are no stranger than good calls usually are; made by `calibrate`.

    Attributes
    ----------
    scorers : tuple of Scorer
        The checks. The statistic of a call is its largest score, or with `ranks` its largest rank.
    level : Fraction
        The exact alpha.
    beta_level : Fraction or None
        The exact beta; None where bad calls set no threshold.
    good, bad : ndarray, shape (n_good,) and (n_bad,)
        Statistics of the calibration calls, ascending; +inf where a scorer failed.
    ranks : TrafficRanks or None
        The map from scores to ranks among unlabelled traffic; None for raw scores.
    tool_names : frozenset of str, or None
        The tools that it may judge, any if None; calls of others abstain.
    group : str or int or None
        The group of calls that the guarantee is for.
    history : History
        When the calls were collected, and who judged them.
    n_unlabelled : int
        Records that were left out for want of an outcome.
    data_notes : tuple of str
        What is odd about the calls, whatever the level.
    """

    scorers: tuple[Scorer, ...]
    level: Fraction
    beta_level: Fraction | None
    good: FloatArray
    bad: FloatArray
    ranks: TrafficRanks | None
    tool_names: frozenset[str] | None
    group: GroupName | None
    history: History
    n_unlabelled: int
    data_notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the checks."""
        return tuple(scorer.name for scorer in self.scorers)

    @property
    def alpha(self) -> float:
        """The level as a float: of good calls that are not accepted, or with beta rejected."""
        return float(self.level)

    @property
    def beta(self) -> float | None:
        """The level of bad calls that are accepted; None where they set no threshold."""
        return None if self.beta_level is None else float(self.beta_level)

    @property
    def n_good(self) -> int:
        """Good calls that it was calibrated on, failed ones among them."""
        return len(self.good)

    @property
    def n_bad(self) -> int:
        """Bad calls."""
        return len(self.bad)

    @cached_property
    def n_failed(self) -> int:
        """Good calls on which a scorer failed."""
        return count_failed(self.good)

    @property
    def n_needed(self) -> int:
        """Good calls from which the threshold is finite, if no more of them fail."""
        return self._basis.n_needed

    @property
    def n_missing(self) -> int:
        """Good calls that are missing for that."""
        return max(0, self.n_needed - self.n_good)

    @property
    def n_bad_missing(self) -> int:
        """Bad calls that are missing for anything to be accepted at beta; 0 without beta."""
        return max(0, self._basis.n_bad_needed - self.n_bad)

    @cached_property
    def thresholds(self) -> Thresholds:
        """The cuts on the statistic."""
        return thresholds_of(self.good, self.bad, self.level, self.beta_level)

    @property
    def threshold(self) -> float:
        """ACCEPT up to here; infinite where nothing is accepted."""
        return self.thresholds.accept_to if self.thresholds.accepts else math.inf

    @property
    def reject_above(self) -> float:
        """REJECT above; infinite for never, as without beta."""
        return self.thresholds.reject_above

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is bounded about good and bad calls, and what is not claimed."""
        return guarantee_of(self._basis, self.thresholds)

    @cached_property
    def bad_rejection(self) -> Proportion | None:
        """Share of the bad calls that are not accepted, with its interval.

        None without bad calls, where nothing is accepted, and with beta, because then the same bad calls
        chose the threshold.
        """
        if self.beta_level is not None or not self.n_bad or not self.thresholds.accepts:
            return None
        return proportion_of(int(np.count_nonzero(self.bad > self.threshold)), self.n_bad)

    @property
    def collected(self) -> tuple[str, str] | None:
        """First and last day of the calibration calls, if known."""
        return self.history.collected

    @property
    def labeling_source(self) -> str | None:
        """Who or what judged them, if known."""
        return self.history.labeling_source

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the calls and these levels, in sentences."""
        return (*self.data_notes, *(note.text for note in self.level_notes))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that decides, the same after saving and loading."""
        return saving.fingerprint_of(self)

    def decide(self, context: ToolCallContext) -> GuardResult:
        """The decision on one call; its tool is not run.

        Parameters
        ----------
        context : ToolCallContext

        Returns
        -------
        GuardResult
            ABSTAIN where a scorer fails or returns something to await, and for a tool that the calibration is
            not for.

        Raises
        ------
        TypeError
            For what is no context. What a scorer raises is never passed on, unless it is no Exception.
        """
        if self._is_foreign(context):
            return of_other_tool(self._rule, context)
        return self._decide(context)

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        """`decide` for scorers of which some are awaited, all at the same time; cancellations pass."""
        if self._is_foreign(context):
            return of_other_tool(self._rule, context)
        return self._rule.judge(context, await ascore_all(self.scorers, context))

    def decide_scores(
        self, scores: Mapping[str, float], context: ToolCallContext | None = None
    ) -> GuardResult:
        """The decision on scores that were made elsewhere.

        Parameters
        ----------
        scores : mapping of str to float
            One score a check, higher is stranger; +inf for one that failed.
        context : ToolCallContext, optional
            The call, for the record and for the check of its tool.

        Returns
        -------
        GuardResult
            The same as `decide` where the scorers give these scores.

        Raises
        ------
        TypeError, ValueError
            For other checks than these, and for scores that are no numbers, nan or -inf.
        """
        checked = _check_scores(scores, self.names)
        if context is not None and self._is_foreign(context):
            return of_other_tool(self._rule, context)
        return self._rule.judge(context, [scorer.read(checked[scorer.name]) for scorer in self.scorers])

    def at_level(self, alpha: Level, beta: Level | None = None) -> Calibrator:
        """The same calls at another level; `notes` says what is odd there, and nothing warns.

        Parameters
        ----------
        alpha : float, str, Fraction or Decimal
            Level in (0, 1).
        beta : float, str, Fraction or Decimal, optional
            Level for bad calls; by default the present one.

        Raises
        ------
        TypeError, ValueError
            For levels outside (0, 1), and a beta without bad calls.
        """
        if beta is not None and not self.n_bad:
            raise ValueError("`beta` must be None without bad calls; got a level. Calibrate with some.")
        level = self.beta_level if beta is None else as_level(beta, "beta")
        return replace(self, level=as_level(alpha), beta_level=level)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrator to a JSON file, all of it or nothing; of its scorers only the fingerprints."""
        _artefact.write(path, saving.KIND, saving.written(self))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], scorers: Scorer | ScoreFunction | Iterable[Scorer | ScoreFunction]
    ) -> Calibrator:
        """The calibrator that `save` wrote, equal to the last bit, with its scorers given again.

        Raises
        ------
        CalibrationMismatch
            If these are not the scorers that it was calibrated with.
        ArtefactError
            For a file that is damaged, or is something else.
        """
        return cls._restored("path", _artefact.read(path, saving.KIND), as_scorers(scorers))

    def to_dict(self) -> dict[str, Any]:
        """The calibrator as plain values with versions and a digest, ready for JSON."""
        return _artefact.wrap(saving.KIND, saving.written(self))

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        scorers: Scorer | ScoreFunction | Iterable[Scorer | ScoreFunction],
    ) -> Calibrator:
        """The calibrator that `to_dict` wrote; raises like `load`."""
        payload = _artefact.unwrap("document", saving.KIND, document)
        return cls._restored("document", payload, as_scorers(scorers))

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any], scorers: tuple[Scorer, ...]) -> Calibrator:
        saving.check_scorers(name, payload, scorers)

        def build(plain: Mapping[str, Any]) -> Calibrator:
            return cls(scorers=scorers, **saving.read(plain, scorers))

        found: Calibrator = _artefact.restored(
            name, saving.KIND, payload=payload, build=build, written=saving.written
        )
        return found

    def __getstate__(self) -> dict[str, Any]:
        # What was derived holds functions that cannot be pickled, and is derived again.
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __repr__(self) -> str:
        cut = f"threshold={self.threshold!r}" if self.thresholds.accepts else "accepts nothing"
        return f"Calibrator({', '.join(self.names)}: alpha={self.alpha:g}, {self.n_good} good calls, {cut})"

    def _is_foreign(self, context: ToolCallContext) -> bool:
        if not isinstance(context, ToolCallContext):
            raise TypeError(
                f"`context` must be a ToolCallContext; got {type(context).__name__}. "
                "Build one: ToolCallContext('search', {'query': 'weather'})."
            )
        return self.tool_names is not None and context.tool_name not in self.tool_names

    @cached_property
    def _rule(self) -> Rule:
        return rule_of(
            self.names,
            self.thresholds,
            self.ranks,
            tool_names=self.tool_names,
            guarantee=self.guarantee,
            fingerprint=self.fingerprint,
        )

    @cached_property
    def _decide(self) -> Callable[[ToolCallContext], GuardResult]:
        return decider_of(self._rule, self.scorers)

    @cached_property
    def _basis(self) -> Basis:
        return Basis(
            level=self.level,
            beta=self.beta_level,
            n_good=self.n_good,
            n_bad=self.n_bad,
            n_failed=self.n_failed,
            checks=len(self.scorers),
            ranked=self.ranks is not None,
            group=self.group,
            history=self.history,
        )

    @cached_property
    def level_notes(self) -> tuple[Note, ...]:
        """What is odd at these levels, each sentence with the category that `calibrate` warns under."""
        found = notes_of_levels(
            self._basis,
            self.thresholds,
            good=self.good,
            scorers=self.scorers,
            sentence=self.guarantee.sentence,
        )
        blind = None if self.ranks is None else blind_note(self.ranks, self.names, self.thresholds.good_to)
        return (*found, *([] if blind is None else [Note(blind, UserWarning)]))


def decide(calibrator: Calibrator, context: ToolCallContext) -> GuardResult:
    """`calibrator.decide(context)` as a function."""
    return calibrator.decide(context)


def _check_scores(scores: Mapping[str, float], names: Sequence[str]) -> Mapping[str, float]:
    checked = check_named_scores(scores)
    if set(checked) != set(names):
        raise ValueError(
            f"`scores` must hold a score for each of {', '.join(names)}; got {', '.join(checked) or 'none'}. "
            "A check that failed to run counts as +inf."
        )
    return checked
