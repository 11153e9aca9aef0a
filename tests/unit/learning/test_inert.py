"""How often thresholds fire and decide, against counting and against scoring again without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_logs import BASE, healthy, log_of

from rag_confidence import MetricPolicy, score_many
from rag_confidence.learning.inert import ThresholdUse, bands_of, thresholds_of, value_for_share
from rag_confidence.learning.log import read_log

RNG = np.random.default_rng(11)
QUERIES = RNG.standard_normal((80, 12))
PASSAGES = QUERIES[:, None] * RNG.uniform(0.2, 2.0, (80, 1, 1)) + RNG.standard_normal((80, 5, 12))
POLICY = MetricPolicy(grounding_center=0.5, answer_at=60, review_at=20, grounding_min=30)
BATCH = score_many(QUERIES, PASSAGES, policy=POLICY)


def uses(policy: MetricPolicy = POLICY, metrics: Any = BATCH) -> dict[str, ThresholdUse]:
    """Uses by name."""
    return {use.name: use for use in thresholds_of(read_log(metrics, None), policy)}


def test_firing_is_counted_value_by_value() -> None:
    """A threshold fires below it, in the units of the policy; the range is the observed one."""
    for name, use in uses().items():
        if name == "contradiction_at":
            continue
        values = BATCH.retrieval_confidence if use.reads == "kpi" else getattr(BATCH, use.reads)
        assert use.fired == sum(bool(value < use.value) for value in values)
        assert (use.n, use.lowest, use.highest) == (80, values.min(), values.max())


def without(name: str) -> MetricPolicy:
    """The policy with one threshold taken away."""
    if name == "answer_at":
        return replace(POLICY, answer_at=POLICY.review_at)
    if name.startswith("floors."):
        return replace(POLICY, floors=replace(POLICY.floors, **{name.removeprefix("floors."): 0.0}))
    return replace(POLICY, **{name: 0.0})


def test_deciding_is_what_scoring_again_without_the_threshold_changes() -> None:
    """A threshold decides on the retrievals whose policy verdict it alone changes."""
    found = uses()
    decided = 0
    for name, use in found.items():
        if name == "contradiction_at":
            continue
        again = score_many(QUERIES, PASSAGES, policy=without(name)).policy_verdict
        assert use.decided == np.count_nonzero(again != BATCH.policy_verdict), name
        decided += use.decided
    assert decided > 20


def test_contradiction_fires_from_its_threshold_on() -> None:
    """It is compared the other way round, and left out of the verdict to see what it decides."""
    scores = iter([0.5, 0.1] * 40)
    texts = [["a"] * 5] * 80
    batch = score_many(QUERIES, PASSAGES, texts, policy=POLICY, contradiction=lambda _: next(scores))
    use = uses(metrics=batch)["contradiction_at"]
    assert (use.fires, use.n, use.fired, use.lowest, use.highest) == ("at least", 80, 40, 0.1, 0.5)
    assert use.decided == np.count_nonzero(batch.policy_verdict != BATCH.policy_verdict) > 5


def test_what_was_not_assessed_does_not_count() -> None:
    """Null drivers leave n; a threshold that nothing met neither always nor never fires."""
    use = uses(MetricPolicy(), log_of(30, support_cohesion=None))["floors.support_cohesion"]
    assert (use.n, use.fired, use.lowest, use.never, use.always) == (0, 0, None, False, False)


def test_only_scored_retrievals_of_the_policy_count() -> None:
    """Rows of another policy and empty retrievals are left out."""
    nothing = {name: None for name in BASE if name.startswith("signals.")}
    records = [*log_of(25), *log_of(5, {"policy_fingerprint": "other"}), *log_of(4, nothing)]
    assert uses(MetricPolicy(), records)["answer_at"].n == 25


def test_never_and_always_need_twenty_retrievals() -> None:
    """A threshold that would fire on one in ten is silent on 19 of 19 too often to call it inert."""
    for n, said in ((19, False), (20, True)):
        found = uses(MetricPolicy(), log_of(n, kpi=0.5))
        assert (found["review_at"].never, found["answer_at"].always) == (said, said)


@given(
    st.lists(st.floats(0, 100), min_size=10, max_size=60, unique=True),
    st.sampled_from(["below", "at least"]),
)
def test_a_tenth_is_between_a_tenth_and_half_as_many_again(values: list[float], fires: Any) -> None:
    """The threshold fires on the number of values it says, which is about one in ten."""
    column = np.array(values)
    cut, count = value_for_share(column, fires)
    if cut is None:
        # Values closer than twelve decimals, which no threshold that one can read parts.
        assert np.diff(np.sort(column)).min() < 1e-10
        return
    assert count == np.count_nonzero(column < cut if fires == "below" else column >= cut)
    assert len(values) / 10 <= count <= 1.5 * np.ceil(len(values) / 10)


@pytest.mark.parametrize(
    ("values", "fires", "cut", "count"),
    [
        (np.arange(1.0, 101.0), "below", 10.1, 10),
        (np.arange(1.0, 101.0), "at least", 91.0, 10),
        (np.full(40, 3.0), "below", None, 0),
        (np.zeros(0), "below", None, 0),
        (np.array([0.0] * 10 + [1.0] * 10), "at least", None, 0),
        (0.001 * np.arange(20.0), "below", 0.002, 2),
    ],
)
def test_a_tenth_by_hand(values: Any, fires: Any, cut: float | None, count: int) -> None:
    """As few decimals as part the values; none where ties are too large."""
    assert value_for_share(values, fires) == (cut, count)


def test_bands_count_the_words_of_the_records() -> None:
    """The counts are those of the band words in the records."""
    records = BATCH.to_dicts()
    for band in bands_of(read_log(BATCH, None), POLICY):
        key = {3: "confidence_band", 4: "retrieval_confidence_band"}.get(len(band.words), "")
        key = key if band.reads == "kpi" else f"{band.reads}_band"
        words = [record[key] for record in records]
        assert dict(zip(band.words, band.counts, strict=True)) == {w: words.count(w) for w in band.words}
        assert band.unused == tuple(word for word in band.words if word not in words)


def test_few_retrievals_leave_no_word_unused() -> None:
    """From fewer than twenty retrievals nothing is said about words."""
    records, _ = healthy(19)
    assert all(band.unused == () for band in bands_of(read_log(records, None), MetricPolicy()))
