"""What a diagnosis advises where retrievals were scored with a corpus profile, and where they were not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from retrieval_logs import Records, healthy

from rag_confidence.learning.diagnose import diagnose
from rag_confidence.learning.findings import Finding

N = 120
RECORDS, LABELS = healthy(N)
NOISE = np.random.default_rng(0).random(N)
WITHOUT = "Without a corpus profile"


def column(name: str) -> np.ndarray[Any, Any]:
    """A column of the healthy log."""
    return np.array([record[name] for record in RECORDS])


def changed(values: dict[str, Any], *, profiled: bool) -> Records:
    """The healthy log with other columns, made with a profile or without."""
    lists = {name: np.asarray(value).tolist() for name, value in values.items()}
    fingerprint = "abc" if profiled else None
    return [
        {**record, **{name: value[at] for name, value in lists.items()}, "profile_fingerprint": fingerprint}
        for at, record in enumerate(RECORDS)
    ]


def said(values: dict[str, Any], code: str, *, profiled: bool) -> Finding:
    """The one finding with this code on the changed log."""
    (one,) = [
        found
        for found in diagnose(changed(values, profiled=profiled), LABELS).of(code)
        if found.numbers.get("name") in (None, "topical_grounding", "grounding_min")
    ]
    return one


NEVER = {"signals.topical_grounding": 0.6 + 0.3 * NOISE}
ALWAYS = {"signals.topical_grounding": 0.3 * NOISE}
AT_BOUNDS = {"signals.topical_grounding": np.where(np.arange(N) < 80, 1.0, 0.6 + 0.3 * NOISE)}
LIKE = {"kpi": 0.5 + 0.4 * column("signals.max_cosine") + 0.02 * NOISE}
BEATEN = {"signals.max_cosine": 0.3 + 0.4 * LABELS + 0.3 * NOISE}
NONE = {"kpi": 0.1 + np.arange(N) // 2 / 75 - 0.03 * LABELS}
SATURATED = {"kpi": np.where(np.arange(N) < 60, 1e-5 * NOISE, column("kpi"))}


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("kpi_like_cosine", LIKE),
        ("cosine_beats_kpi", BEATEN),
        ("kpi_does_not_separate", NONE),
        ("kpi_saturated", SATURATED),
        ("driver_at_bounds", AT_BOUNDS),
        ("threshold_never_fires", NEVER),
        ("threshold_always_fires", ALWAYS),
    ],
)
def test_advice_fits_how_the_log_was_scored(code: str, values: dict[str, Any]) -> None:
    """Neither a profile nor a grounding gate is advised to whom has a profile; no one is told both cases."""
    bare, fitted = (said(values, code, profiled=profiled).action for profiled in (False, True))
    assert "a corpus profile" in bare or "fit_grounding" in bare
    for wrong in ("fit_grounding", "or a corpus profile", "fit a corpus profile", WITHOUT):
        assert wrong not in fitted
    assert WITHOUT not in bare


@pytest.mark.parametrize(
    ("code", "values"), [("driver_at_bounds", AT_BOUNDS), ("threshold_never_fires", NEVER)]
)
def test_grounding_that_stays_high_is_a_note_with_a_profile(code: str, values: dict[str, Any]) -> None:
    """It is meant to be near 100 there, and a warning without a profile."""
    assert said(values, code, profiled=False).severity == "warning"
    one = said(values, code, profiled=True)
    assert one.severity == "note"
    assert one.action.startswith("With a corpus profile")
    assert "questions on other subjects" in one.action


def test_other_drivers_warn_with_a_profile_too() -> None:
    """Only grounding is meant to be saturated."""
    records = changed({"signals.answer_localization": np.where(NOISE < 0.7, 1.0, NOISE)}, profiled=True)
    (one,) = diagnose(records).of("driver_at_bounds")
    assert (one.severity, one.action) == ("warning", "")


@pytest.mark.parametrize("profiled", [False, True])
def test_the_end_of_the_scale_is_not_proposed(profiled: bool) -> None:
    """Where all but one in ten show 100, a threshold of 100 would tell nothing apart."""
    high = np.where(np.arange(N) < 12, 0.9995 + 0.00049 * NOISE, 1.0)
    records = changed({"kpi": high, "signals.topical_grounding": high}, profiled=profiled)
    found = diagnose(records).of("threshold_never_fires")
    actions = {one.numbers["name"]: one.action for one in found}
    assert {"review_at", "grounding_min"} <= set(actions)
    assert not any("100 would have fired" in action for action in actions.values())
    assert actions["review_at"] == "No value below the end of the scale would fire on about 10 %."
