"""What the document of conformguard 0.2 offers, section by section, done with this package.

Written from that document and not from this code. Where it promises more than can be proven, the test is
about what can be.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from rag_confidence import guard
from rag_confidence.guard import (
    AbstainedError,
    CalibrationRefused,
    CalibrationStore,
    CallRecord,
    LabelingSource,
    Scorer,
    SmallCalibrationWarning,
    StaleCalibrationWarning,
    ToolCallContext,
    calibrate,
    calibrate_multi_check,
    decide,
    decide_multi_check,
    judge_score,
    logprob_score,
    mean_logprob,
    schema_validity_score,
    wrap,
)

TRIALS = 100
QUERIES = [f"weather in {'x' * n}" for n in range(200)]


def query_length_score(context: ToolCallContext) -> float:
    """The scorer of the document."""
    return len(context.args["query"])


def number_score(context: ToolCallContext) -> float:
    """A score that the call carries."""
    return context.args["score"]


def call(score: float, **more: Any) -> ToolCallContext:
    """A call that carries its score."""
    return ToolCallContext(tool_name="search", args={"score": score}, **more)


def good(scores: Sequence[float]) -> list[tuple[ToolCallContext, bool]]:
    """Good calls with these scores."""
    return [(call(score), True) for score in scores]


def bad(scores: Sequence[float]) -> list[tuple[ToolCallContext, bool]]:
    """Bad calls with these scores."""
    return [(call(score), False) for score in scores]


def exact_rank(n: int, alpha: Fraction) -> int:
    """k = ceil((n + 1)(1 - alpha)), in fractions."""
    return math.ceil((n + 1) * (1 - alpha))


def band(n: int, alpha: float, *, trials: int = TRIALS, test: int) -> tuple[float, float]:
    """Where the mean coverage over trials of a sound guard lies in 99.99 % of runs.

    Coverage of one trial is Beta(k, n + 1 - k), seen through `test` calls.
    """
    k = exact_rank(n, Fraction(str(alpha)))
    mean = k / (n + 1)
    of_beta = mean * (1 - mean) / (n + 2)
    deviation = math.sqrt((of_beta + (mean * (1 - mean) - of_beta) / test) / trials)
    return mean - 3.9 * deviation, mean + 3.9 * deviation


def coverages(
    pool: Sequence[float], alpha: float, n: int, *, shift: float = 0.0, trials: int = TRIALS
) -> list[float]:
    """Share of the other good calls that a guard accepts, over splits of a pool; shifted, if asked for."""
    rng = np.random.default_rng(0)
    labelled = good(pool)
    scores = np.asarray(pool, dtype=float)
    found = []
    for _ in range(trials):
        order = rng.permutation(len(pool))
        guarded = calibrate(number_score, [labelled[at] for at in order[:n]], alpha)
        found.append(float(np.mean(scores[order[n:]] + shift <= guarded.threshold)))
    return found


class TestQuickstart:
    """Calibrate on past calls, wrap a tool, read decision, guarantee and output."""

    @staticmethod
    def _wrapped(**options: Any) -> tuple[Callable[..., Any], list[str]]:
        ran: list[str] = []

        def search(query: str) -> list[str]:
            ran.append(query)
            return [f"result for {query}"]

        calibrator = calibrate(
            scorer=query_length_score,
            calibration_data=[
                (ToolCallContext(tool_name="search", args={"query": query}), True) for query in QUERIES
            ],
            alpha=0.05,
            labeling_source=LabelingSource.DETERMINISTIC,
        )
        wrapped = wrap(
            search,
            calibrator=calibrator,
            context_builder=lambda **kwargs: ToolCallContext(tool_name="search", args=kwargs),
            **options,
        )
        return wrapped, ran

    def test_an_ordinary_call_is_accepted_and_runs(self) -> None:
        """decision is "accept", output what the tool returned, guarantee is there, and the tool ran once."""
        search, ran = self._wrapped(on_abstain="escalate")
        result = search(query="weather in Berlin")
        assert result.decision == "accept"
        assert result.output == ["result for weather in Berlin"]
        assert result.guarantee.holds
        assert ran == ["weather in Berlin"]

    def test_a_strange_call_abstains_and_does_not_run(self) -> None:
        """decision is "abstain", there is no output, and the tool was not called."""
        search, ran = self._wrapped(on_abstain="escalate")
        result = search(query="weather" * 100)
        assert (result.decision, result.output, ran) == ("abstain", None, [])

    def test_on_abstain_raises_if_asked(self) -> None:
        """on_abstain="raise" raises an error that carries the whole result."""
        search, ran = self._wrapped(on_abstain="raise")
        with pytest.raises(AbstainedError) as caught:
            search(query="weather" * 100)
        assert caught.value.result.decision == "abstain"
        assert ran == []

    def test_on_abstain_calls_back(self) -> None:
        """A callback gets the result, and what it returns is the output."""
        search, _ = self._wrapped(on_abstain=lambda result: f"ask a person, {result.decision}")
        result = search(query="weather" * 100)
        assert result.output == "ask a person, abstain"
        assert not result.accepted

    def test_a_typo_in_on_abstain_is_found_when_the_tool_is_wrapped(self) -> None:
        """Not at the first call that abstains."""
        with pytest.raises(ValueError, match="on_abstain"):
            self._wrapped(on_abstain="escalte")

    def test_the_tool_is_never_rewritten(self) -> None:
        """It runs with the objects of its caller, and scorers see copies of them."""
        seen: list[Any] = []

        def meddling(context: ToolCallContext) -> float:
            context.args["words"].append("changed")
            return float(len(context.args["words"]))

        words = ["a", "b"]
        data = [(ToolCallContext("say", {"words": [""] * n}), True) for n in range(30)]
        wrapped = wrap(lambda words: seen.append(words), calibrate(meddling, data, 0.1), tool_name="say")
        assert wrapped(words).accepted
        assert seen[0] is words
        assert words == ["a", "b"]

    def test_an_async_tool_is_awaited(self) -> None:
        """The output of an async tool is what it returns and no coroutine."""

        async def search(query: str) -> str:
            await asyncio.sleep(0)
            return query.upper()

        data = [(ToolCallContext("search", {"query": query}), True) for query in QUERIES]
        result = asyncio.run(wrap(search, calibrate(query_length_score, data, 0.05))("Berlin"))
        assert result.output == "BERLIN"

    def test_the_built_in_scorers_exist(self) -> None:
        """logprob_score, judge_score and, with a schema, schema_validity_score: higher is more suspicious."""
        sure = ToolCallContext("t", token_logprobs=[-0.1, -0.1], judge_score=0.9)
        unsure = ToolCallContext("t", token_logprobs=[-3.0, -3.0], judge_score=0.2)
        for scorer in (logprob_score(mean_logprob), judge_score()):
            assert scorer.score(unsure).value > scorer.score(sure).value

    def test_the_schema_score_is_made_by_a_real_validator(self) -> None:
        """Arguments that break their JSON Schema score higher than arguments that keep it."""
        schema = {"properties": {"query": {"type": "string"}}, "required": ["query"]}
        scorer = schema_validity_score(schema)
        assert scorer.score(ToolCallContext("t", {"query": "a"})).value == 0.0
        assert scorer.score(ToolCallContext("t", {"query": 7})).value > 0.0

    @pytest.mark.needs_extra("schema")
    def test_the_schema_score_takes_pydantic_models(self) -> None:
        """A model class serves as the schema."""
        from pydantic import BaseModel

        class Arguments(BaseModel):
            query: str

        scorer = schema_validity_score(Arguments)
        assert scorer.score(ToolCallContext("t", {"query": "a"})).value == 0.0
        assert scorer.score(ToolCallContext("t", {})).value > 0.0

    @pytest.mark.parametrize("outcome", ["False", "no", "0", None, 2, 0.5])
    def test_only_booleans_are_outcomes(self, outcome: Any) -> None:
        """A text such as "False" is no good outcome: it is refused."""
        with pytest.raises(ValueError, match="must be 0 or 1"):
            calibrate(number_score, [(call(1.0), outcome)], 0.1)


class TestTheGuaranteePrecisely:
    """The k-th smallest score, a bound for one call, at any n, for any score, with every decision."""

    @pytest.mark.parametrize("alpha", ["0.05", "0.1", "0.15", "0.2", "0.3", "0.7"])
    def test_the_threshold_is_the_kth_smallest_score(self, alpha: str) -> None:
        """k = ceil((n + 1)(1 - alpha)), exactly, also where floats round it to the next number."""
        for n in (19, 20, 39, 59, 99, 139, 199):
            scores = np.random.default_rng(n).permutation(n).astype(float)
            k = exact_rank(n, Fraction(alpha))
            assert calibrate(number_score, good(scores.tolist()), float(alpha)).threshold == k - 1

    @pytest.mark.parametrize("n", [9, 10, 19, 28])
    def test_a_good_call_is_wrongly_abstained_on_at_most_alpha(self, n: int) -> None:
        """At finite n and exactly: each of n + 1 exchangeable calls takes its turn as the new one."""
        scores = np.random.default_rng(n).normal(size=n + 1)
        stopped = 0
        for at in range(n + 1):
            known = good(np.delete(scores, at).tolist())
            stopped += not decide(calibrate(number_score, known, 0.1), call(float(scores[at]))).accepted
        assert stopped == math.floor((n + 1) * 0.1 + 1e-9)

    @pytest.mark.parametrize("score", ["noise", "turned round", "rounded"])
    def test_the_quality_of_the_score_does_not_matter_for_the_bound(self, score: str) -> None:
        """Useless scores keep it too; they only stop fewer bad calls."""
        rng = np.random.default_rng(3)
        pool = {
            "noise": rng.normal(size=1200),
            "turned round": -rng.exponential(size=1200),
            "rounded": np.round(rng.normal(size=1200), 1),
        }[score]
        low, _ = band(200, 0.1, test=1000)
        assert np.mean(coverages(pool.tolist(), 0.1, 200)) >= low

    def test_only_good_calls_set_the_threshold(self) -> None:
        """Bad calls among the data change nothing but what is known of them."""
        known = good(list(range(100)))
        without, with_bad = (
            calibrate(number_score, known + more, 0.1) for more in ([], bad([500.0] * 7 + [3.0]))
        )
        assert with_bad.threshold == without.threshold
        assert (with_bad.n_good, with_bad.n_bad) == (100, 8)
        assert (with_bad.bad_rejection.count, with_bad.bad_rejection.total) == (7, 8)

    def test_every_decision_carries_the_guarantee_as_data(self) -> None:
        """Level, number of calls, days and labelling source are fields, and one sentence says them all."""
        day = datetime(2026, 6, 1, tzinfo=UTC)
        records = [
            CallRecord(call(float(n)), outcome=True, recorded_at=day + timedelta(days=n % 31))
            for n in range(1000)
        ]
        calibrator = calibrate(
            number_score,
            records,
            0.05,
            labeling_source=LabelingSource.DETERMINISTIC,
            now=day + timedelta(days=40),
        )
        for score in (0.0, 5000.0):
            told = calibrator.decide(call(score)).guarantee
            assert (told.alpha, told.bound, told.n1) == (0.05, 0.05, 1000)
            assert told.collected == ("2026-06-01", "2026-07-01")
            assert told.labeling_source == "deterministic"
            for part in ("1000", "5 %", "deterministic", "2026-06-01", "2026-07-01", "exchangeable"):
                assert part in told.sentence
            assert json.loads(json.dumps(told.to_dict()))["sentence"] == told.sentence

    def test_the_sentence_claims_what_is_proven_and_no_more(self) -> None:
        """It is about good calls that are abstained on, and not about decisions that are wrong."""
        sentence = calibrate(number_score, good(list(range(100))), 0.05).guarantee.sentence
        assert "good calls" in sentence
        assert "abstained on" in sentence
        assert "wrong" not in sentence

    def test_days_that_are_not_known_are_not_made_up(self) -> None:
        """Calls without a time are not collected today, and a source that is not named is none."""
        told = calibrate(number_score, good(list(range(100))), 0.05).guarantee
        assert (told.collected, told.labeling_source) == (None, None)

    def test_an_infinite_threshold_abstains_on_everything(self) -> None:
        """With too few calls nothing is accepted or claimed, and the result says how many are missing."""
        with pytest.warns(SmallCalibrationWarning, match="missing: 9"):
            calibrator = calibrate(number_score, good(list(range(10))), 0.05)
        result = calibrator.decide(call(-1e9))
        assert (calibrator.threshold, result.decision) == (math.inf, "abstain")
        assert not result.guarantee.holds
        assert "missing: 9" in result.reason

    @pytest.mark.parametrize("said", [math.nan, None, "1", True, ValueError("no"), np.ones(2)])
    def test_a_scorer_that_fails_never_accepts(self, said: Any) -> None:
        """NaN, no number or an exception: the call abstains and the reason names the scorer."""

        def odd(context: ToolCallContext) -> Any:
            if context.args["score"] != "odd":
                return context.args["score"]
            if isinstance(said, Exception):
                raise said
            return said

        calibrator = calibrate(Scorer("odd_one", odd), good(list(range(50))), 0.1)
        result = calibrator.decide(ToolCallContext("search", {"score": "odd"}))
        assert result.decision == "abstain"
        assert "odd_one" in result.reason
        assert set(result.failed_scorers) == {"odd_one"}


class TestWhatItDoesNotGuarantee:
    """No trajectories, no bound on bad calls, nothing after a change; and all of it is said."""

    def test_no_joint_claim_for_several_calls(self) -> None:
        """The guarantee itself says that it is for single calls."""
        told = calibrate(number_score, good(list(range(100))), 0.05).guarantee
        assert any("several calls" in text for text in told.not_claimed)

    def test_single_calls_together_exceed_the_level(self) -> None:
        """Of ten good calls at .10, some call is stopped far more often than one time in ten."""
        rng = np.random.default_rng(5)
        calibrator = calibrate(number_score, good(rng.uniform(size=500).tolist()), 0.1)
        sessions = rng.uniform(size=(400, 10))
        assert np.mean((sessions > calibrator.threshold).any(axis=1)) > 0.5

    def test_a_session_divides_the_level_by_the_planned_calls(self) -> None:
        """Of ten planned good calls, any is stopped in at most one session in ten, on average."""
        rng = np.random.default_rng(6)
        stopped = []
        for _ in range(60):
            calibrator = calibrate(number_score, good(rng.uniform(size=299).tolist()), 0.1)
            session = guard.Session(calibrator, calls=10)
            stopped.append(float(np.mean((rng.uniform(size=(200, 10)) > session.threshold).any(axis=1))))
        assert np.mean(stopped) <= 0.1 + 3.9 * np.std(stopped) / math.sqrt(len(stopped))
        assert np.mean(stopped) > 0.03

    def test_a_session_runs_no_call_beyond_its_plan(self) -> None:
        """The call after the last planned one raises, and its tool does not run."""
        ran: list[float] = []
        calibrator = calibrate(number_score, good(list(range(99))), 0.1)
        session = guard.Session(calibrator, calls=3)
        tool = wrap(lambda score: ran.append(score), session, tool_name="search")
        for _ in range(3):
            tool(1.0)
        with pytest.raises(guard.SessionExhausted):
            tool(1.0)
        assert len(ran) == 3

    def test_a_session_refuses_a_plan_that_n_cannot_support(self) -> None:
        """T calls need T <= alpha (n + 1), and the refusal says what would do."""
        calibrator = calibrate(number_score, good(list(range(99))), 0.1)
        guard.Session(calibrator, calls=10)
        with pytest.raises(CalibrationRefused, match="at most 10"):
            guard.Session(calibrator, calls=11)

    def test_a_session_claims_nothing_of_the_trajectory(self) -> None:
        """Its guarantee says so in its own words."""
        calibrator = calibrate(number_score, good(list(range(99))), 0.1)
        assert any("trajectory" in text for text in guard.Session(calibrator, calls=5).guarantee.not_claimed)

    def test_catching_bad_calls_is_not_promised(self) -> None:
        """A score of noise accepts most bad calls, and the guarantee says that this is not bounded."""
        rng = np.random.default_rng(7)
        data = good(rng.normal(size=300).tolist()) + bad(rng.normal(size=300).tolist())
        calibrator = calibrate(number_score, data, 0.05)
        assert calibrator.bad_rejection.rate < 0.15
        assert any("bad calls are accepted" in text for text in calibrator.guarantee.not_claimed)

    def test_bad_calls_can_be_bounded_where_they_are_known(self) -> None:
        """With beta a call that could be either is left open, and bad ones are accepted at most at beta."""
        rng = np.random.default_rng(8)
        accepted, rejected, n = [], [], 99
        for _ in range(TRIALS):
            data = good(rng.normal(size=n).tolist()) + bad(rng.normal(1.5, size=n).tolist())
            calibrator = calibrate(number_score, data, 0.1, beta=0.1)
            decisions = [
                [calibrator.decide(call(s)).decision for s in rng.normal(m, size=100)] for m in (0, 1.5)
            ]
            rejected.append(decisions[0].count("reject") / 100)
            accepted.append(decisions[1].count("accept") / 100)
        allowed = 1 - band(n, 0.1, test=100)[0]
        assert np.mean(accepted) <= allowed
        assert np.mean(rejected) <= allowed
        assert calibrator.decide(call(0.75)).decision == "abstain"

    def test_old_calls_are_warned_of(self) -> None:
        """Calls of which the newest is older than 90 days are called stale."""
        old = datetime(2026, 1, 1, tzinfo=UTC)
        records = [CallRecord(call(float(n)), outcome=True, recorded_at=old) for n in range(100)]
        with pytest.warns(StaleCalibrationWarning, match="days ago"):
            calibrate(number_score, records, 0.1, now=old + timedelta(days=91))
        calibrate(number_score, records, 0.1, now=old + timedelta(days=89))

    def test_few_calls_are_noted_in_the_store(self, tmp_path: Path) -> None:
        """A store with fewer calls than are good for a steady rate says so."""
        with CalibrationStore(tmp_path / "calls.db") as store:
            store.add_many(good(list(range(50))))
            assert any("fewer than" in note for note in store.summary().notes)

    def test_calibrating_on_accepted_calls_alone_is_warned_of(self) -> None:
        """What a guard let through is no sample of good calls: the next threshold would be lower."""
        records = [CallRecord(call(float(n)), outcome=True, decision="accept") for n in range(100)]
        with pytest.warns(guard.SelectedCallsWarning, match="accepted by a guard"):
            calibrate(number_score, records, 0.1, max_age=None)


SCENARIOS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "skewed": lambda rng, n: rng.beta(2.0, 8.0, size=n),
    "logprob": lambda rng, n: -np.log(rng.beta(8.0, 1.0, size=n)),
}


class TestCoverageNumbers:
    """Repeated splits at n = 1000 of three kinds of scores: the mean coverage is what theory says."""

    @pytest.mark.parametrize("alpha", [0.1, 0.05])
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_mean_coverage_lies_in_the_band_of_a_mean(self, scenario: str, alpha: float) -> None:
        """R = 100 splits, each calibrated by the guard itself, against the band of the mean of 100."""
        pool = SCENARIOS[scenario](np.random.default_rng(11), 3000)
        low, high = band(1000, alpha, test=2000)
        assert high - low < 0.01
        assert low <= np.mean(coverages(pool.tolist(), alpha, 1000)) <= high

    @pytest.mark.parametrize("alpha", [0.1, 0.05])
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_the_package_has_this_check(self, scenario: str, alpha: float) -> None:
        """coverage_check repeats it for scores of the user's, and its table names target, mean and band."""
        pool = SCENARIOS[scenario](np.random.default_rng(11), 3000)
        report = guard.coverage_check(pool, alpha, calibration_size=1000, trials=TRIALS, seed=0)
        assert not report.flagged
        assert report.mean.low <= report.mean.mean <= report.mean.high
        assert f"{report.mean.mean:.4f}" in report.table(scenario)


class TestRealData:
    """258 real calls of the Berkeley Function-Calling Leaderboard, of which 150 calibrate."""

    @pytest.mark.needs_data
    def test_coverage_on_real_calls(self, data_dir: Path) -> None:
        """A deterministic measure of how complex the arguments are is covered as promised."""
        lines = (data_dir / "bfcl_raw" / "live_simple.jsonl").read_text(encoding="utf-8").splitlines()
        truths = [json.loads(line)["ground_truth"][0] for line in lines]
        assert len(truths) == 258
        scores = [float(len(json.dumps(truth))) for truth in truths]
        low, high = band(150, 0.1, test=108)
        # Lengths tie now and then, and ties only add coverage.
        assert low <= np.mean(coverages(scores, 0.1, 150)) <= high + 0.01


class TestNegativeControls:
    """Where exchangeability is broken on purpose, the same check says so."""

    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_a_shift_by_a_full_spread_is_flagged(self, scenario: str) -> None:
        """Unshifted calls lie in the band; calls shifted by the spread of all scores lie far below it."""
        pool = SCENARIOS[scenario](np.random.default_rng(12), 2000)
        low, high = band(1000, 0.1, test=1000)
        assert low <= np.mean(coverages(pool.tolist(), 0.1, 1000)) <= high
        spread = float(np.ptp(pool))
        assert np.mean(coverages(pool.tolist(), 0.1, 1000, shift=spread, trials=20)) < 0.01

    def test_the_package_has_this_control(self) -> None:
        """coverage_check takes what the held-out calls score in use, and flags it where it moved."""
        pool = np.random.default_rng(14).uniform(size=2000)
        for shift in (0.0, 0.02, 1.0):
            found = guard.coverage_check(pool, 0.1, calibration_size=1000, tested=pool + shift)
            assert found.flagged == (shift > 0.0)

    def test_a_loss_of_two_points_is_seen(self) -> None:
        """The band is that of a mean of trials: a small shift that one trial would hide is flagged too."""
        pool = np.random.default_rng(13).uniform(size=2000)
        low, _ = band(1000, 0.1, test=1000)
        assert np.mean(coverages(pool.tolist(), 0.1, 1000, shift=0.02)) < low


def completion(*calls: tuple[str, str, str], logprob: float | None = -0.05, said: str | None = None) -> Any:
    """A chat completion as a server writes it, with one choice that makes these calls."""
    entries = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    tokens = [{"token": "x", "logprob": logprob, "bytes": None, "top_logprobs": []}] * 20
    choice = {
        "index": 0,
        "finish_reason": "tool_calls" if calls else "stop",
        "message": {"role": "assistant", "content": said, "refusal": None, "tool_calls": entries or None},
        "logprobs": None if logprob is None else {"content": tokens, "refusal": None},
    }
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice]}


def message(*calls: tuple[str, str, dict[str, Any]], said: str | None = None) -> Any:
    """A message of Anthropic's API that makes these calls."""
    text = [{"type": "text", "text": said, "citations": None}] if said else []
    blocks = [
        {"type": "tool_use", "id": call_id, "name": name, "input": given} for call_id, name, given in calls
    ]
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": text + blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def weather_registry() -> Any:
    """A tool that is guarded by how sure the model was, or by the length of its argument."""
    rng = np.random.default_rng(50)

    def weather(city: str) -> str:
        if city == "Atlantis":
            raise LookupError("no such city")
        return f"rain in {city}"

    def unsure(context: ToolCallContext) -> float:
        if context.token_logprobs is None:
            return len(context.args["city"]) / 100
        return -mean_logprob(context.token_logprobs)

    past = [
        (ToolCallContext("weather", {"city": "Paris"}, token_logprobs=[-doubt]), True)
        for doubt in rng.uniform(0.0, 0.4, size=200).tolist()
    ]
    return guard.ToolRegistry({"weather": wrap(weather, calibrate(unsure, past, 0.05))})


class TestRealWorldValidation:
    """Responses as servers send them: signals beside the calls, several calls, or none where one is due."""

    def test_log_probabilities_of_the_response_reach_the_scorers(self) -> None:
        """The same call is accepted from a sure model and abstained on from an unsure one."""
        registry, asked = weather_registry(), ("1", "weather", '{"city": "Paris"}')
        sure, unsure = (
            registry.handle_openai_choice(completion(asked, logprob=logprob)["choices"][0])[0]
            for logprob in (-0.05, -2.0)
        )
        assert (sure.result.decision, unsure.result.decision) == ("accept", "abstain")
        assert unsure.result.guarantee.holds
        assert sure.message == {"role": "tool", "tool_call_id": "1", "content": "rain in Paris"}

    def test_the_aggregate_of_log_probabilities_is_a_choice(self) -> None:
        """A single unsure token moves the minimum and hardly the mean; there is no default between them."""
        context = ToolCallContext("t", token_logprobs=[-0.01] * 99 + [-5.0])
        assert logprob_score(mean_logprob).score(context).value < 0.1
        assert logprob_score(guard.min_logprob).score(context).value == 5.0
        with pytest.raises(TypeError):
            logprob_score()  # type: ignore[call-arg]

    def test_other_signals_of_the_response_reach_the_scorers(self) -> None:
        """metadata is for what belongs to a response, and is added to what the context builder made."""
        past = [(ToolCallContext("t", metadata={"a": n, "b": n}), True) for n in range(50)]
        calibrator = calibrate(lambda context: context.metadata["a"] + context.metadata["b"], past, 0.1)
        tool = wrap(
            lambda: "ran",
            calibrator,
            tool_name="t",
            context_builder=lambda: ToolCallContext("t", metadata={"a": 1}),
        )
        choice = completion(("1", "t", "{}"))["choices"][0]
        (handled,) = guard.ToolRegistry({"t": tool}).handle_openai_choice(choice, metadata={"b": 2})
        assert (handled.result.statistic, handled.result.output) == (3.0, "ran")

    def test_several_calls_of_one_response_each_get_an_answer(self) -> None:
        """An exception, an unknown tool and broken JSON are answers of their own and lose no other result."""
        choice = completion(
            ("1", "weather", '{"city": "Paris"}'),
            ("2", "weather", '{"city": "Atlantis"}'),
            ("3", "dance", "{}"),
            ("4", "weather", '{"city": '),
            ("5", "weather", '{"city": "Rome"}'),
        )["choices"][0]
        handled = weather_registry().handle_openai_choice(choice)
        assert [one.call_id for one in handled] == ["1", "2", "3", "4", "5"]
        assert [one.status for one in handled] == [
            "executed",
            "tool_error",
            "unknown_tool",
            "malformed_arguments",
            "executed",
        ]
        assert [one["tool_call_id"] for one in handled.messages] == ["1", "2", "3", "4", "5"]
        assert isinstance(handled[1].error, LookupError)

    def test_anthropic_messages_are_answered_by_tool_results(self) -> None:
        """One tool_result a tool_use block, marked as an error where the call was not executed."""
        handled = weather_registry().handle_anthropic_message(
            message(("1", "weather", {"city": "Paris"}), ("2", "weather", {"city": "x" * 90}))
        )
        accepted, abstained = handled.messages
        assert accepted["type"] == "tool_result"
        assert (accepted["tool_use_id"], accepted["content"]) == ("1", "rain in Paris")
        assert not accepted["is_error"]
        assert abstained["is_error"]

    def test_a_required_call_that_openai_servers_do_not_produce_raises(self) -> None:
        """required=True raises an error with the finish reason and what the model said instead."""
        registry, silent = weather_registry(), completion(said="It rains.")["choices"][0]
        assert [*registry.handle_openai_choice(silent)] == []
        with pytest.raises(guard.NoToolCallProducedError) as caught:
            registry.handle_openai_choice(silent, required=True)
        assert (caught.value.finish_reason, caught.value.content) == ("stop", "It rains.")

    def test_a_required_call_that_anthropic_does_not_produce_raises(self) -> None:
        """The same for messages; it is no abstention, for there was nothing to judge."""
        with pytest.raises(guard.NoToolCallProducedError) as caught:
            weather_registry().handle_anthropic_message(message(said="It rains."), required=True)
        assert (caught.value.finish_reason, caught.value.content) == ("end_turn", "It rains.")
        assert not isinstance(caught.value, AbstainedError)

    @pytest.mark.needs_extra("test")
    def test_the_objects_of_the_sdks_are_read_like_dictionaries(self) -> None:
        """Responses that the models of the SDKs parsed give the same answers."""
        from anthropic.types import Message
        from openai.types.chat import ChatCompletion

        registry = weather_registry()
        chat = completion(("1", "weather", '{"city": "Paris"}'))
        parsed = ChatCompletion.model_validate(chat).choices[0]
        assert (
            registry.handle_openai_choice(parsed).messages
            == registry.handle_openai_choice(chat["choices"][0]).messages
        )
        said = message(("1", "weather", {"city": "Paris"}))
        assert (
            registry.handle_anthropic_message(Message.model_validate(said)).messages
            == registry.handle_anthropic_message(said).messages
        )

    @pytest.mark.needs_extra("test")
    def test_end_to_end_over_http(self) -> None:
        """A client of the SDK asks a server on this machine, and each answer carries its guarantee."""
        from openai import OpenAI

        registry = weather_registry()
        decisions = []
        replies = [completion(("1", "weather", '{"city": "Oslo"}'), logprob=p) for p in (-0.05, -3.0)]
        with serving(replies) as address, OpenAI(base_url=address, api_key="none", max_retries=0) as client:
            for _ in replies:
                answer = client.chat.completions.create(
                    model="stub", messages=[{"role": "user", "content": "Weather?"}], logprobs=True
                )
                (handled,) = registry.handle_openai_choice(answer.choices[0], required=True)
                assert "exchangeable" in handled.result.guarantee.sentence
                decisions.append(handled.result.decision)
        assert decisions == ["accept", "abstain"]


@contextmanager
def serving(replies: Sequence[Any]) -> Iterator[str]:
    """The address of a server on loopback that gives these replies, one a request."""
    waiting = [json.dumps(reply).encode() for reply in replies]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = waiting.pop(0)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            """Nothing on standard error."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class TestMultiCheck:
    """Several checks on one call: one threshold on their maximum, and the checks that failed by name."""

    @staticmethod
    def _checks() -> list[Scorer]:
        return [
            Scorer(f"check_{at}", lambda context, at=at: context.args["scores"][at], version=str(at))
            for at in range(3)
        ]

    @staticmethod
    def _calls(rows: Any) -> list[tuple[ToolCallContext, bool]]:
        return [(ToolCallContext("search", {"scores": row}), True) for row in np.asarray(rows).tolist()]

    def test_one_threshold_over_the_largest_score(self) -> None:
        """It is the k-th smallest of the maxima of the good calls."""
        rows = np.random.default_rng(20).normal(size=(200, 3))
        calibrator = calibrate_multi_check(self._checks(), calibration_data=self._calls(rows), alpha=0.1)
        assert calibrator.threshold == np.sort(rows.max(axis=1))[exact_rank(200, Fraction("0.1")) - 1]

    def test_all_checks_pass_together_for_enough_good_calls(self) -> None:
        """P(all K checks pass | good call) >= 1 - alpha, over repeated calibrations."""
        rng, passed = np.random.default_rng(21), []
        for _ in range(TRIALS):
            calibrator = calibrate_multi_check(self._checks(), self._calls(rng.normal(size=(200, 3))), 0.1)
            passed.append(float(np.mean(rng.normal(size=(500, 3)).max(axis=1) <= calibrator.threshold)))
        low, high = band(200, 0.1, test=500)
        assert low <= np.mean(passed) <= high

    def test_failed_checks_name_those_above_the_threshold(self) -> None:
        """A call that one check alone finds strange abstains because of that one."""
        rows = np.random.default_rng(22).normal(size=(200, 3))
        calibrator = calibrate_multi_check(self._checks(), self._calls(rows), 0.1)
        result = decide_multi_check(calibrator, ToolCallContext("search", {"scores": [0.0, 9.0, 0.0]}))
        assert (result.decision, result.failed_checks) == ("abstain", ("check_1",))
        result = decide_multi_check(calibrator, ToolCallContext("search", {"scores": [0.0, 0.0, 0.0]}))
        assert (result.decision, result.failed_checks) == ("accept", ())

    def test_a_check_that_cannot_run_is_among_them(self) -> None:
        """A check without its input fails, by name, whatever the others say."""
        rows = np.random.default_rng(23).normal(size=(200, 3))
        calibrator = calibrate_multi_check(self._checks(), self._calls(rows), 0.1)
        result = decide_multi_check(calibrator, ToolCallContext("search", {"scores": [-9.0, -9.0]}))
        assert (result.decision, result.failed_checks) == ("abstain", ("check_2",))

    def test_the_guarantee_is_joint_and_says_for_how_many_checks(self) -> None:
        """Its kind and its sentence are those of three checks together."""
        rows = np.random.default_rng(24).normal(size=(200, 3))
        told = calibrate_multi_check(self._checks(), self._calls(rows), 0.1).guarantee
        assert told.kind == "joint"
        assert "3 checks together" in told.sentence

    def test_it_works_through_wrap(self) -> None:
        """A tool is guarded by several checks like by one, and its result names the failed ones."""
        rows = np.random.default_rng(25).normal(size=(200, 3))
        calibrator = calibrate_multi_check(self._checks(), self._calls(rows), 0.1)
        tool = wrap(lambda scores: sum(scores), calibrator, tool_name="search")
        assert tool([0.0, 0.0, 0.5]).output == 0.5
        assert tool([9.0, 0.0, 9.0]).failed_checks == ("check_0", "check_2")

    def test_a_schema_gate_and_a_logprob_score_split_on_one_check(self) -> None:
        """A valid call that the model was unsure of passes the schema and fails the log-probabilities."""
        schema = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
        rng = np.random.default_rng(26)

        def answer(doubt: float, city: Any = "Paris") -> ToolCallContext:
            logprobs = -rng.exponential(doubt, size=30)
            return ToolCallContext("weather", {"city": city}, token_logprobs=logprobs.tolist())

        checks = [schema_validity_score(schema, name="schema_gate"), logprob_score(mean_logprob)]
        traffic = [answer(0.05) for _ in range(200)]
        calibrator = calibrate_multi_check(
            checks, [(answer(0.05), True) for _ in range(200)], 0.1, reference=traffic
        )
        assert decide_multi_check(calibrator, answer(2.0)).failed_checks == ("logprob",)
        assert decide_multi_check(calibrator, answer(0.01, city=7)).failed_checks == ("schema_gate",)

    @pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
    def test_joint_beats_bonferroni_and_naive_is_invalid(self, rho: float) -> None:
        """At any correlation naive thresholds miss the level, and joint stops the most bad calls validly."""
        rng = np.random.default_rng([30, int(10 * rho)])

        def rows(n: int) -> Any:
            common, own = rng.standard_normal((n, 1)), rng.standard_normal((n, 3))
            return np.sqrt(rho) * common + np.sqrt(1 - rho) * own

        report = guard.compare_checks(
            rows(3000), 0.1, calibration_size=1000, bad=rows(1000) + 2.5, trials=TRIALS, seed=0
        )
        low, high = band(1000, 0.1, test=2000)
        joint, bonferroni, naive = (report.of(name) for name in ("joint", "bonferroni", "naive"))
        assert low <= joint.good_accepted.value <= high
        assert bonferroni.good_accepted.value >= low
        assert naive.good_accepted.value < low
        assert [joint.keeps_target, bonferroni.keeps_target, naive.keeps_target] == [True, True, False]
        assert joint.bad_stopped.value > bonferroni.bad_stopped.value
        assert "bonferroni" in report.table()


@pytest.mark.needs_extra("cli")
class TestCommandLine:
    """The five commands of the document, with their options, as `rag-confidence guard ...`."""

    @staticmethod
    def _run(*arguments: object) -> int:
        from rag_confidence.adapters.cli import main

        return main(["guard", *map(str, arguments)])

    @staticmethod
    def _store(folder: Path, n: int = 1500) -> Path:
        path = folder / "calibration.db"
        rng = np.random.default_rng(60)
        scorer = Scorer("length", number_score, version="1")
        records = [
            CallRecord(
                call(score),
                outcome=True,
                scores={"length": score},
                fingerprints={"length": scorer.fingerprint},
                labeling_source="human",
            )
            for score in rng.uniform(size=n).tolist()
        ]
        with CalibrationStore(path) as store:
            store.add_many(records)
        return path

    @staticmethod
    def _data(folder: Path, name: str, shift: float, n: int = 1500) -> Path:
        rows = np.random.default_rng(61).normal(shift, size=(n, 2)).tolist()
        records = [{"scores": {"schema": a, "logprob": b}, "outcome": True} for a, b in rows]
        path = folder / name
        path.write_text(json.dumps(records), encoding="utf-8")
        return path

    def test_inspect_describes_a_store(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """inspect --store says how many calls of which tool, and what is amiss."""
        assert self._run("inspect", "--store", self._store(tmp_path)) == 0
        out = capsys.readouterr().out
        assert "1500" in out
        assert "search" in out

    def test_inspect_leaves_other_files_alone(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A file of something else is refused in a sentence and not changed, and none is made."""
        other = tmp_path / "other.db"
        with closing(sqlite3.connect(other)) as connection, connection:
            connection.execute("CREATE TABLE mine (a)")
        before = other.read_bytes()
        assert self._run("inspect", "--store", other) != 0
        assert self._run("inspect", "--store", tmp_path / "none.db") != 0
        assert other.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["other.db"]
        assert "Traceback" not in capsys.readouterr().err

    def test_threshold_is_that_of_calibrate(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """threshold --alpha --store prints the threshold that calibrate finds on the same calls."""
        path = self._store(tmp_path)
        assert self._run("threshold", "--alpha", "0.05", "--store", path, "--json") == 0
        with CalibrationStore(path) as store:
            scorer = Scorer("length", number_score, version="1")
            expected = calibrate(scorer, store.query(), 0.05).threshold
        assert str(expected) in capsys.readouterr().out

    def test_coverage_check_of_a_store(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """coverage-check --alpha --calibration-size --store prints the mean coverage and its band."""
        path = self._store(tmp_path)
        options = ("--alpha", "0.05", "--calibration-size", "1000", "--store", path)
        assert self._run("coverage-check", *options) == 0
        assert "0.95" in capsys.readouterr().out

    def test_multi_check_threshold(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """multi-check-threshold --data --alpha prints the joint threshold and names the checks."""
        data = self._data(tmp_path, "calibration.json", 0.0)
        assert self._run("multi-check-threshold", "--data", data, "--alpha", "0.1", "--json") == 0
        rows = [[*entry["scores"].values()] for entry in json.loads(data.read_text(encoding="utf-8"))]
        joint = np.sort(np.max(rows, axis=1))[exact_rank(len(rows), Fraction("0.1")) - 1]
        out = capsys.readouterr().out
        assert str(float(joint)) in out
        assert "schema" in out
        assert "logprob" in out

    def test_multi_check_coverage_check(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Without --compare it checks the joint threshold alone."""
        data = self._data(tmp_path, "calibration.json", 0.0)
        options = ("--data", data, "--alpha", "0.1", "--calibration-size", "1000")
        assert self._run("multi-check-coverage-check", *options) == 0
        out = capsys.readouterr().out
        assert "0.9" in out
        assert "bonferroni" not in out.lower()

    def test_multi_check_comparison(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """With --compare and --bad-data it sets joint beside naive and Bonferroni, and counts bad calls."""
        data, bad_data = (self._data(tmp_path, *file) for file in (("good.json", 0.0), ("bad.json", 2.0)))
        options = ("--data", data, "--alpha", "0.1", "--calibration-size", "1000", "--compare")
        assert self._run("multi-check-coverage-check", *options) == 0
        capsys.readouterr()
        self._run("multi-check-coverage-check", *options, "--bad-data", bad_data)
        out = capsys.readouterr().out.lower()
        for word in ("joint", "naive", "bonferroni", "bad"):
            assert word in out


class TestRoadmap:
    """Instance-adaptive levels: a rule gives each call a risk group with a level of its own."""

    @staticmethod
    def _calibrated() -> Any:
        rng = np.random.default_rng(40)
        data = [
            (ToolCallContext("pay", {"score": score, "sum": 10 + 1000 * (n % 2)}), True)
            for n, score in enumerate(rng.uniform(size=800).tolist())
        ]

        def risk(context: ToolCallContext) -> str:
            return "high" if context.args["sum"] > 500 else "low"

        return guard.calibrate_groups(number_score, data, risk, levels={"low": 0.2, "high": 0.05})

    def test_each_group_has_its_own_level_and_calibration(self) -> None:
        """The same score may pass in one group and not in the other, at the levels that were declared."""
        grouped = self._calibrated()
        found = {
            name: grouped.decide(ToolCallContext("pay", {"score": 0.9, "sum": paid}))
            for name, paid in (("low", 10), ("high", 1010))
        }
        assert (found["low"].decision, found["high"].decision) == ("abstain", "accept")
        assert (found["low"].guarantee.alpha, found["high"].guarantee.alpha) == (0.2, 0.05)

    def test_the_guarantee_is_for_the_group_and_says_so(self) -> None:
        """It names the group, and counts the calls of that group alone."""
        told = self._calibrated().decide(ToolCallContext("pay", {"score": 0.1, "sum": 10})).guarantee
        assert (told.group, told.n1) == ("low", 400)
        assert "'low'" in told.sentence

    def test_a_call_of_no_declared_group_abstains(self) -> None:
        """Where the rule raises or names another group there is no guarantee to fall back on."""
        result = self._calibrated().decide(ToolCallContext("pay", {"score": 0.1}))
        assert result.decision == "abstain"
        assert result.guarantee is None

    def test_it_works_through_wrap(self) -> None:
        """A tool is guarded by groups like by one calibrator."""
        tool = wrap(lambda score, sum: "paid", self._calibrated(), tool_name="pay")
        assert tool(0.9, 1010).output == "paid"
        assert tool(0.9, 10).output is None
