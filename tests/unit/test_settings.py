"""Options of one call: what holds for all queries, and what each query came with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rag_confidence import CalibrationMismatch, MetricPolicy, fit_isotonic, score, score_many
from rag_confidence._inputs import check_retrieval, check_retrievals
from rag_confidence._settings import Asked, Settings

FORM = r"^`[\w.\[\]]+` must .+; got .+\. .+\.$"
QUERY = [1.0, 0.0, 0.2]
ROWS = [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]]
BOTH: list[Callable[..., Any]] = [
    lambda **options: score(QUERY, ROWS, **options),
    lambda **options: score_many([QUERY, QUERY], [ROWS, ROWS], **options),
]


def refuse(call: Callable[..., Any], pattern: str, **options: Any) -> None:
    """A refusal in the one form, as ValueError or TypeError."""
    with pytest.raises((ValueError, TypeError), match=pattern):
        call(**options)
    with pytest.raises((ValueError, TypeError), match=FORM):
        call(**options)


@pytest.mark.parametrize("call", BOTH, ids=["score", "score_many"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", {"answer_at": 60}),
        ("policy", MetricPolicy),
        ("policy", "seed"),
        ("calibrator", 0.9),
        ("calibrator", "isotonic"),
        ("contradiction", 0.2),
        ("contradiction", [0.2]),
        ("embedder", 3),
        ("embedder", b"minilm"),
        ("embedding_backend", "bm25"),
        ("embedding_backend", None),
        ("embedding_backend", "LEXICAL"),
        ("invalid_rows", "ignore"),
        ("invalid_rows", True),
        ("loops", "on"),
        ("loops", True),
        ("loops", None),
        ("loops", np.array(["off", "off"])),
        ("duplicate_cosine", 1.1),
        ("duplicate_cosine", -0.1),
        ("duplicate_cosine", math.nan),
        ("duplicate_cosine", None),
        ("duplicate_cosine", "0.99"),
        ("duplicate_cosine", True),
        ("seed", -1),
        ("seed", 0.0),
        ("seed", None),
        ("seed", True),
        ("seed", "0"),
        ("seed", np.random.default_rng(0)),
        ("k_requested", 0),
        ("k_requested", -3),
        ("k_requested", True),
        ("k_requested", 2.5),
        ("k_requested", math.nan),
        ("perturb", "no"),
        ("perturb", np.array([True, False])),
    ],
)
def test_options_that_cannot_be_meant_are_refused(call: Callable[..., Any], name: str, value: Any) -> None:
    """Every option is checked before anything is computed, and names itself."""
    refuse(call, f"^`{name}", **{name: value})


@pytest.mark.parametrize("rows", [[], ROWS])
def test_options_are_checked_whatever_was_retrieved(rows: Any) -> None:
    """A typo is found also when nothing was retrieved."""
    refuse(lambda **o: score(QUERY, rows, **o), "^`loops`", loops="on")
    refuse(lambda **o: score(QUERY, rows, **o), "^`calibrator`", calibrator=1)
    refuse(lambda **o: score(QUERY, rows, **o), "^`texts`", texts=["a"] * (len(rows) + 1))
    refuse(lambda **o: score(QUERY, rows, **o), "^`parents`", parents=[None] * (len(rows) + 1))


def test_settings_are_frozen_and_default_to_the_default_policy() -> None:
    """Settings cannot change after they were checked."""
    settings = checked()
    assert settings.policy == MetricPolicy()
    with pytest.raises(AttributeError):
        settings.seed = 1  # type: ignore[misc]


def checked(**options: Any) -> Settings:
    """Settings with the defaults of score()."""
    return Settings(**options)


@pytest.mark.parametrize("perturb", [True, False, np.True_, np.False_, 0, 1])
def test_truth_values_of_any_kind(perturb: Any) -> None:
    """Booleans of NumPy, and 0 and 1, are truth values."""
    assert checked(perturb=perturb).perturb is bool(perturb)


def test_of_one_keeps_what_was_given() -> None:
    """Only what a query came with is in the mappings."""
    batch = check_retrieval(QUERY, ROWS, "raise")
    empty = Asked.of_one(batch, None, None, None, None, None)
    assert (empty.texts, empty.parents, empty.candidates, empty.questions) == ({}, {}, {}, {})
    assert list(empty.k_requested) == [None]
    full = Asked.of_one(batch, ["a", "b", "c"], [None, 0, 0], [0.9], "why?", 5)
    assert full.texts == {0: ("a", "b", "c")}
    assert full.parents[0].tolist() == [-1, 0, 0]
    assert full.questions == {0: "why?"}
    assert list(full.k_requested) == [5]


def test_of_many_keeps_positions() -> None:
    """None leaves a query out; the others keep their place."""
    batch = check_retrievals([QUERY] * 3, [ROWS, ROWS[:1], []], "raise")
    asked = Asked.of_many(batch, [None, ["a"], None], [[None, 0, 0], None, None], None, ["x", None, "z"], 4)
    assert asked.texts == {1: ("a",)}
    assert list(asked.parents) == [0]
    assert asked.questions == {0: "x", 2: "z"}
    assert list(asked.k_requested) == [4, 4, 4]


@pytest.mark.parametrize("k", [[5, None], (5, None), np.array([5, 6]), 5, np.int64(5), None])
def test_k_requested_for_all_or_for_each(k: Any) -> None:
    """One number holds for every query; a list or an array has one for each."""
    batch = score_many([QUERY, QUERY], [ROWS, ROWS], k_requested=k)
    wanted = [k, k] if np.ndim(k) == 0 else list(k)
    assert [m.to_dict()["k_requested"] for m in batch] == wanted
    assert all(type(m.to_dict()["k_requested"]) in (int, type(None)) for m in batch)


@pytest.mark.parametrize(
    ("name", "value", "pattern"),
    [
        ("texts", ["a", "b"], r"^`texts\[0\]` must be a list of strings"),
        ("texts", [["a", "b", "c"]], "^`texts` must have one entry for each of the 2"),
        ("texts", [None, ["a"]], r"^`texts\[1\]` must have one entry for each of the 3"),
        ("texts", "ab", "^`texts` must have one entry a query"),
        ("parents", [[None, 0, 0]], "^`parents` must have one entry for each of the 2"),
        ("parents", [None, [None, 2, 1]], r"^`parents\[1\]` must be a tree"),
        ("parents", [None, 0], r"^`parents\[1\]` must"),
        ("candidates", [0.9, 0.8], "^`candidates"),
        ("candidates", [[0.9, 0.8, 0.8]], "^`candidates` must have one entry"),
        ("query_text", "ab", "^`query_text` must have one entry a query"),
        ("query_text", [None, 3], r"^`query_text\[1\]` must be a string"),
        ("k_requested", [3], "^`k_requested` must have one entry"),
        ("k_requested", [3, 0], "^`k_requested"),
        ("k_requested", "ab", "^`k_requested` must have one entry"),
    ],
)
def test_lists_for_a_batch_have_one_entry_a_query(name: str, value: Any, pattern: str) -> None:
    """What score() takes goes in a list, and errors name its position."""
    refuse(BOTH[1], pattern, **{name: value})


def test_trees_do_not_survive_dropped_rows() -> None:
    """A tree whose nodes are dropped is no tree; the cure is to embed them again."""
    rows = [*ROWS, [0.0, 0.0, 0.0]]
    refuse(
        lambda **o: score(QUERY, rows, **o),
        "^`parents` must be left out when passages are dropped",
        parents=[None, 0, 0, 1],
        invalid_rows="drop",
    )
    assert score(QUERY, ROWS, parents=[None, 0, 0], invalid_rows="drop").verdict


def test_no_passages_take_an_empty_tree() -> None:
    """A section tree without sections is an empty result like any other."""
    assert score(QUERY, [], parents=[], texts=[]).reason_code == "no_passages"


def test_contradiction_needs_texts() -> None:
    """Only with passages, and in a batch for each query that has some."""
    call = {"contradiction": lambda texts: 0.1}
    for one in BOTH:
        refuse(one, r"^`texts(\[0\])?` must be given with `contradiction`", **call)
    refuse(BOTH[1], r"^`texts\[1\]` must be given", texts=[["a", "b", "c"], None], **call)
    assert score(QUERY, [], **call).reason_code == "no_passages"


def test_a_probability_map_of_percentages_is_refused() -> None:
    """A map that was fitted on 0..100 would clip every KPI: the error says so."""
    percentages = fit_isotonic([10.0, 40.0, 60.0, 90.0], [0, 1, 0, 1])
    with pytest.raises(CalibrationMismatch, match="which look like percentages"):
        Settings(calibrator=percentages)
    Settings(calibrator=fit_isotonic([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]))


def test_a_probability_map_of_other_scores_is_refused() -> None:
    """A map that says how its scores were made is refused where they are made otherwise."""
    rows = [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
    made = Settings(embedder="a").provenance
    Settings(calibrator=fit_isotonic(*rows, provenance=made), embedder="a")
    with pytest.raises(CalibrationMismatch, match="for the embedder 'a' where this call has 'b'"):
        Settings(calibrator=fit_isotonic(*rows, provenance=made), embedder="b")
