"""Groups are gates of their own, and a group that cannot have one abstains unless pooling was asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import reference_conformal as ref
from histories import LEVELS, History, few, histories
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet, refuse

from rag_confidence._types import Decision
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.errors import SmallCalibrationWarning

NAMES = st.lists(st.sampled_from(["a", "b", 3]), min_size=48, max_size=48)


def rows(counts: dict[Any, int], *, shift: float = 0.0) -> tuple[Any, Any, list[Any]]:
    """Well separated raw scores, labels and groups: `counts` rows of each class in each group."""
    rng = np.random.default_rng([62, len(counts)])
    scores, labels, groups = [], [], []
    for at, (group, n) in enumerate(counts.items()):
        scores += [*(rng.normal(0, 1, n) + shift * at), *(rng.normal(5, 1, n) + shift * at)]
        labels += [0] * n + [1] * n
        groups += [group] * 2 * n
    return np.array(scores), labels, groups


def fitted(scores: Any, labels: Any, alpha: Any = "0.1", **options: Any) -> ConformalGate:
    """A gate on raw scores, warnings aside."""
    with quiet():
        return fit_conformal_gate(scores, labels, alpha, score_kind="raw", **options)


# --- each group by itself


@given(histories(), NAMES, LEVELS, st.sampled_from(["marginal", "pac"]))
def test_a_group_is_a_gate_of_its_own(history: History, names: list[Any], alpha: Any, guarantee: str) -> None:
    """Where a group supports both levels, its sets and p-values are those of a gate on its rows alone."""
    groups = names[: len(history.labels)]
    gate = fitted(history.scores, history.labels, alpha, groups=groups, guarantee=guarantee)
    for group in set(groups):
        at = [i for i, g in enumerate(groups) if g == group]
        labels = [history.labels[i] for i in at]
        if len(set(labels)) < 2:
            continue
        alone = fitted(history.scores[at], labels, alpha, guarantee=guarantee)
        with quiet():
            found = gate.predict(history.probes, [group] * len(history.probes))
            expected = alone.predict(history.probes)
            p_found = gate.p_values(history.probes, [group] * len(history.probes))
            p_expected = alone.p_values(history.probes)
        assert gate.thresholds(group) == (alone.q0, alone.t1)
        assert found.prediction_sets == expected.prediction_sets
        assert found.decision.tolist() == expected.decision.tolist()
        assert np.array_equal(p_found, p_expected)


@few
@given(histories(), NAMES, LEVELS)
def test_one_score_is_decided_like_many(history: History, names: list[Any], alpha: Any) -> None:
    """With groups too, predict_one equals the rows of predict, for known and unknown groups."""
    gate = fitted(history.scores, history.labels, alpha, groups=names[: len(history.labels)])
    groups = [("a", "b", 3, "new", 99)[i % 5] for i in range(len(history.probes))]
    with quiet():
        found = gate.predict(history.probes, groups)
        singles = [gate.predict_one(s, g) for s, g in zip(history.probes, groups, strict=True)]
        assert singles == [found[i] for i in range(len(found))] == list(found)
        p0, p1 = gate.p_values(history.probes, groups)
    assert [s.decision.value for s in singles] == found.decision.tolist()
    assert [s.reason_code.value for s in singles] == found.reason_code.tolist()
    assert [s.prediction_set for s in singles] == found.prediction_sets
    assert [s.group for s in singles] == groups
    assert [(s.p_value_0, s.p_value_1) for s in singles] == list(zip(p0.tolist(), p1.tolist(), strict=True))


@few
@given(histories(), LEVELS)
def test_one_group_of_all_rows_is_no_group(history: History, alpha: Any) -> None:
    """A single group of everything has the thresholds of the gate without groups."""
    plain = fitted(history.scores, history.labels, alpha)
    grouped = fitted(history.scores, history.labels, alpha, groups=["all"] * len(history.labels))
    assert grouped.thresholds("all") == (plain.q0, plain.t1)


@few
@given(histories(), NAMES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(history: History, names: list[Any], order: Any) -> None:
    """Shuffled rows with their groups give the same thresholds for every group."""
    groups = names[: len(history.labels)]
    places = list(range(len(groups)))
    order.shuffle(places)
    labels, shuffled = [history.labels[i] for i in places], [groups[i] for i in places]
    gate = fitted(history.scores, history.labels, groups=groups)
    again = fitted(history.scores[places], labels, groups=shuffled)
    assert {g: gate.thresholds(g) for g in set(groups)} == {g: again.thresholds(g) for g in set(groups)}


def test_groups_of_different_scales_each_get_their_error() -> None:
    """A group with higher scores has higher thresholds: pooling them would accept most of it falsely."""
    scores, labels, groups = rows({"low": 200, "high": 200}, shift=20.0)
    gate = fitted(scores, labels, groups=groups)
    low, high = gate.thresholds("low"), gate.thresholds("high")
    assert high[0] > low[1] + 5
    assert gate.predict_one(20.0, "high").decision is Decision.REJECT
    assert gate.predict_one(20.0, "low").decision is not Decision.REJECT


@pytest.mark.parametrize("names", [("a", "b"), (1, 2), (0, "0"), ("", " ")], ids=repr)
def test_groups_keep_their_kind(names: tuple[Any, Any]) -> None:
    """The integer 0 and the text "0" are two groups; NumPy's integers and texts are the plain ones."""
    scores, labels, groups = rows(dict.fromkeys(names, 30), shift=3.0)
    gate = fitted(scores, labels, groups=groups)
    assert gate.thresholds(names[0]) != gate.thresholds(names[1])
    for name in names:
        same = np.str_(name) if isinstance(name, str) else np.int64(name)
        assert gate.thresholds(same) == gate.thresholds(name)
        assert gate.predict_one(2.0, same) == gate.predict_one(2.0, name)


# --- groups without a gate


@pytest.mark.parametrize("group", ["new", 7, ""], ids=repr)
def test_an_unseen_group_abstains_and_says_so(group: Any) -> None:
    """A group that was never met abstains at every score, with a reason of its own and no claim."""
    scores, labels, groups = rows({"a": 30, "b": 30})
    gate = fitted(scores, labels, groups=groups)
    for score in (-100.0, 0.0, 2.5, 5.0, 100.0):
        with quiet():
            one = gate.predict_one(score, group)
        assert (one.decision, one.reason_code) == (Decision.ABSTAIN, "gate_unfit_group")
        assert one.group == group
        assert not one.guarantee.holds
        assert one.guarantee.bound is None
        assert repr(group) in one.guarantee.sentence
        assert one.margin_to_threshold is None


def test_a_small_group_abstains_and_the_fit_says_so() -> None:
    """A group with too few rows abstains; one warning names it, its counts and the count needed."""
    scores, labels, groups = rows({"large": 30, "small": 5})
    with pytest.warns(SmallCalibrationWarning) as caught:
        gate = fit_conformal_gate(scores, labels, 0.1, groups=groups, score_kind="raw")
    messages = [str(w.message) for w in caught if w.category is SmallCalibrationWarning]
    assert len(messages) == 1
    for part in ("small", "5", "9"):
        assert part in messages[0]
    assert "large" not in messages[0]
    found = gate.predict([-3.0, 2.5, 9.0], ["small"] * 3)
    assert found.decision.tolist() == ["abstain"] * 3
    assert found.reason_code.tolist() == ["gate_unfit_group"] * 3
    assert not gate.predict_one(9.0, "small").guarantee.holds
    assert gate.predict([-3.0, 9.0], ["large"] * 2).decision.tolist() == ["reject", "accept"]


def test_one_warning_names_many_small_groups_shortly() -> None:
    """A thousand small groups give one warning of a readable length."""
    scores, labels, groups = rows({"large": 30, **{f"tiny{i}": 1 for i in range(1000)}})
    with pytest.warns(SmallCalibrationWarning) as caught:
        fit_conformal_gate(scores, labels, 0.1, groups=groups, score_kind="raw")
    messages = [str(w.message) for w in caught if w.category is SmallCalibrationWarning]
    assert len(messages) == 1
    assert "1992 more" in messages[0]
    assert len(messages[0]) < 1000


def test_a_group_of_one_class_is_too_small() -> None:
    """A group without any row of a class keeps that label; no group is silently given another's rows."""
    scores, labels, groups = rows({"both": 30})
    extra = np.linspace(0, 1, 30)
    gate = fitted(np.r_[scores, extra], [*labels, *[0] * 30], groups=[*groups, *["bad"] * 30])
    q0, t1 = gate.thresholds("bad")
    assert q0 == ref.order_statistic(extra, 28)
    assert t1 == -math.inf
    assert gate.predict_one(9.0, "bad").decision is Decision.ACCEPT
    assert gate.predict_one(-9.0, "bad").decision is Decision.ABSTAIN


# --- pooling


def test_pooling_is_asked_for_and_weakens_the_guarantee() -> None:
    """small_groups="pool" lends small and unseen groups the thresholds of all rows and says what it costs."""
    scores, labels, groups = rows({"large": 60, "small": 4})
    gate = fitted(scores, labels, groups=groups, small_groups="pool")
    whole = fitted(scores, labels)
    for group in ("small", "new"):
        assert gate.thresholds(group) == (whole.q0, whole.t1)
        one = gate.predict_one(9.0, group)
        assert one.decision is Decision.ACCEPT
        assert one.guarantee.group == group
        words = " ".join([one.guarantee.sentence, *one.guarantee.not_claimed, one.guarantee.conditioning])
        assert "too few rows" in words
        assert "all groups" in words
        assert repr(group) in one.guarantee.sentence
    own = gate.guarantee_of("large")
    assert gate.thresholds("large") == fitted(scores[:120], labels[:120]).thresholds()
    assert "too few rows" not in own.sentence
    assert one.guarantee.not_claimed != own.not_claimed


def test_without_pooling_the_guarantee_is_of_the_group() -> None:
    """A group's guarantee names the group and counts its rows, not those of all groups."""
    scores, labels, groups = rows({"a": 60, "b": 30})
    gate = fitted(scores, labels, groups=groups)
    stated = gate.guarantee_of("b")
    assert (stated.group, stated.n0, stated.n1, stated.holds) == ("b", 30, 30, True)
    assert "'b'" in stated.sentence
    assert "30" in stated.sentence
    assert gate.predict_one(2.0, "b").guarantee == stated


def test_the_claim_of_pooled_groups_is_true() -> None:
    """What pooled thresholds decide stays within the bound; all groups together do not, and that is said.

    A large group keeps its own threshold and spends its own alpha; the thresholds of all rows spend another
    on the small groups. Here small groups have the highest scores, and the sum is nearly twice alpha.
    """
    rng = np.random.default_rng([62, 9])
    small = [f"s{i}" for i in range(11)]
    insufficient = np.r_[rng.uniform(0, 0.5, 920), rng.uniform(0.6, 0.7, 88)]
    groups = ["large"] * 920 + [s for s in small for _ in range(8)]
    scores, labels = np.r_[insufficient, rng.uniform(0.8, 1.0, 100)], [0] * 1008 + [1] * 100
    gate = fitted(scores, labels, 0.1, groups=[*groups, *["large"] * 100], small_groups="pool")
    fresh = np.r_[rng.uniform(0, 0.5, 9200), rng.uniform(0.6, 0.7, 880)]
    excluded = ~gate.predict(fresh, ["large"] * 9200 + [s for s in small for _ in range(80)]).label0_kept
    stated = gate.guarantee_of("s0")
    assert stated.bound == 0.1
    assert excluded[9200:].sum() / len(fresh) <= 0.1
    assert excluded.mean() > 0.15
    assert "by the thresholds of all groups pooled" in stated.event
    assert "only what the pooled thresholds decide" in stated.sentence
    assert any("all groups together keep the bound" in claim for claim in stated.not_claimed)
    assert not any("all groups together" in claim for claim in gate.guarantee_of("large").not_claimed)


def test_an_unknown_way_with_small_groups_is_refused() -> None:
    """Only "abstain" and "pool" are ways to treat a small group."""
    scores, labels, groups = rows({"a": 30})
    call = lambda: fitted(scores, labels, groups=groups, small_groups="merge")  # noqa: E731
    refuse(ValueError, "^`small_groups` must be one of ", call)


# --- groups are given where they belong


def test_groups_are_given_exactly_where_there_are_groups() -> None:
    """A gate with groups needs one for each score, a gate without refuses them."""
    scores, labels, groups = rows({"a": 30, "b": 30})
    grouped, plain = fitted(scores, labels, groups=groups), fitted(scores, labels)
    for call in (
        lambda: grouped.predict_one(1.0),
        lambda: grouped.predict([1.0]),
        lambda: grouped.p_values([1.0]),
    ):
        refuse((TypeError, ValueError), "^`groups?` must ", call)
    for call in (lambda: plain.predict_one(1.0, "a"), lambda: plain.predict([1.0], ["a"])):
        refuse((TypeError, ValueError), "^`groups?` must ", call)
    refuse(ValueError, "^`groups?` must ", lambda: grouped.q0)


@pytest.mark.parametrize(
    "groups", [["a"], ["a"] * 3, "aa", 5, [None, "a"], [1.5, "a"], ["a", True]], ids=repr
)
def test_groups_are_one_for_each_row(groups: Any) -> None:
    """Wrong lengths and entries that are no group are refused, in fit and in predict."""
    scores, labels, good = rows({"a": 30, "b": 30})
    gate = fitted(scores, labels, groups=good)
    refuse((TypeError, ValueError), r"^`groups(\[\d\])?` must ", lambda: gate.predict([1.0, 2.0], groups))
    refuse(
        (TypeError, ValueError),
        r"^`groups(\[\d\])?` must ",
        lambda: fitted([0.1, 0.2], [0, 1], groups=groups),
    )


def test_predictions_keep_their_groups() -> None:
    """The caller's list may change after predict; the predictions do not."""
    scores, labels, good = rows({"a": 30, "b": 30}, shift=4.0)
    gate = fitted(scores, labels, groups=good)
    groups = ["a", "b"]
    found = gate.predict([3.0, 3.0], groups)
    groups.reverse()
    assert [found[0].group, found[1].group] == ["a", "b"]
    assert [one.decision.value for one in found] == found.decision.tolist()


@pytest.mark.needs_extra("test")
def test_groups_of_a_data_frame_pair_by_its_index() -> None:
    """Columns of one table are paired whatever their index; a column of another order is refused."""
    import pandas as pd

    scores, labels, groups = rows({"a": 30, "b": 30})
    table = pd.DataFrame({"s": scores, "y": labels, "g": groups}).set_index(pd.RangeIndex(500, 620))
    gate = fitted(table["s"], table["y"], groups=table["g"])
    found = gate.predict(table["s"], table["g"])
    plain = fitted(scores, labels, groups=groups).predict(scores, groups)
    assert found.decision.tolist() == plain.decision.tolist()
    assert found[0] == plain[0]
    assert [one.group for one in found[:3]] == groups[:3]
    shuffled = table["g"].iloc[::-1]
    refuse(ValueError, "^`groups` must have the index", lambda: gate.predict(table["s"], shuffled))
    refuse(
        ValueError, "^`groups` must have the index", lambda: fitted(table["s"], table["y"], groups=shuffled)
    )


# --- rows of one query


@given(histories(least=2), LEVELS, st.data())
def test_a_cluster_counts_once_with_its_strangest_row(history: History, alpha: Any, data: Any) -> None:
    """Of each cluster and class one score remains: the highest insufficient or the lowest sufficient one."""
    n = len(history.labels)
    clusters = data.draw(st.lists(st.sampled_from(["q1", "q2", 3, 4, "q5"]), min_size=n, max_size=n))
    gate = fitted(history.scores, history.labels, alpha, clusters=clusters)
    table = list(zip(history.scores.tolist(), history.labels, clusters, strict=True))
    class0 = [max(s for s, y, c in table if y == 0 and c == q) for q in {c for _, y, c in table if y == 0}]
    class1 = [min(s for s, y, c in table if y == 1 and c == q) for q in {c for _, y, c in table if y == 1}]
    assert (gate.n0, gate.n1) == (len(class0), len(class1))
    slow = ref.gate([*class0, *class1], [0] * len(class0) + [1] * len(class1), alpha)
    assert (gate.q0, gate.t1) == (slow.q0, slow.t1)


@few
@given(histories(least=4), LEVELS, st.integers(0, 99))
def test_each_query_in_turn_has_an_error_in_at_most_its_share(
    history: History, alpha: Any, seed: int
) -> None:
    """With each query in turn as the new one, at most floor((m + 1) alpha) of m + 1 have any row excluded."""
    own, sufficient = history.of(0), history.of(1)
    queries = np.random.default_rng([62, seed]).integers(0, 3, len(own))
    names = np.unique(queries)
    wrong = 0
    for query in names[: len(names) if len(names) > 1 else 0]:
        rest = queries != query
        labels = [0] * int(rest.sum()) + [1] * len(sufficient)
        clusters = [*queries[rest].tolist(), *range(10, 10 + len(sufficient))]
        gate = fitted(np.concatenate([own[rest], sufficient]), labels, alpha, clusters=clusters)
        with quiet():
            wrong += not gate.predict(own[~rest]).label0_kept.all()
    assert wrong <= math.floor(len(names) * ref.level(alpha))


@few
@given(histories(), LEVELS)
def test_clusters_of_one_row_change_nothing(history: History, alpha: Any) -> None:
    """If each row is a cluster of its own, the thresholds are those without clusters."""
    plain = fitted(history.scores, history.labels, alpha)
    alone = fitted(history.scores, history.labels, alpha, clusters=list(range(len(history.labels))))
    assert (alone.q0, alone.t1, alone.n0, alone.n1) == (plain.q0, plain.t1, plain.n0, plain.n1)


def test_the_guarantee_counts_queries_where_rows_are_clustered() -> None:
    """With clusters the guarantee is about queries, and counts them."""
    scores, labels, _ = rows({"a": 60})
    stated = fitted(scores, labels, clusters=[i // 2 for i in range(120)]).guarantee
    assert (stated.n0, stated.n1) == (30, 30)
    assert "quer" in stated.sentence


@pytest.mark.parametrize("clusters", [["a"], "ab", 5, [None, "a"], [math.nan, "a"], [["a"], ["b"]]], ids=repr)
def test_clusters_are_one_for_each_row(clusters: Any) -> None:
    """Missing, unhashable and too few clusters are refused."""
    refuse(
        (TypeError, ValueError),
        r"^`clusters(\[\d\])?` must ",
        lambda: fitted([0.1, 0.2], [0, 1], clusters=clusters),
    )


def test_a_cluster_lies_within_one_group() -> None:
    """A query in two groups would have two chances of a false ACCEPT where one is bounded: it is refused."""
    scores, labels, groups = rows({"a": 30, "b": 30})
    clusters = [f"q{i}" for i in range(len(scores))]
    fitted(scores, labels, groups=groups, clusters=clusters)
    spanning = ["q0"] * len(scores)
    refuse(
        ValueError,
        "^`clusters` must lie within one group",
        lambda: fitted(scores, labels, groups=groups, clusters=spanning),
    )


def test_a_clustered_gate_speaks_of_queries() -> None:
    """One number a query is bounded, so event, condition and sentence count queries and not rows."""
    scores, labels, _ = rows({"a": 40})
    stated = fitted(scores, labels, clusters=[i // 2 for i in range(len(scores))]).guarantee
    assert "any row of a query" in stated.event
    assert "the query has a row" in stated.conditioning
    assert "of those with an insufficient row any such row is accepted" in stated.sentence
    assert any("single rows" in claim for claim in stated.not_claimed)


def test_delta_is_for_each_group_by_itself() -> None:
    """A pac gate with groups says that its delta is not for all of them at once."""
    scores, labels, groups = rows({"a": 60, "b": 60})
    gate = fitted(scores, labels, groups=groups, guarantee="pac", delta=0.1)
    assert any("all groups and classes" in claim for claim in gate.guarantee_of("a").not_claimed)
