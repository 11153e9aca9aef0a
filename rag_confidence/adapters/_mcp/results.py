"""What results of all tools share."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

# A threshold of minus infinity accepts every score. JSON cannot carry it, so this stands for it.
BELOW_ALL = -1.0

DecisionName: TypeAlias = Literal["ACCEPT", "REJECT", "ABSTAIN"]
Label: TypeAlias = Literal[0, 1]


class Result(BaseModel):
    """A result without other keys than those described."""

    model_config = ConfigDict(extra="forbid")


class ProportionResult(Result):
    """An observed rate with a 95 % interval that is exact for independent rows."""

    count: int = Field(description="Rows that show the event.")
    total: int = Field(description="Rows that could.")
    rate: float | None = Field(description="count / total; null for a total of 0.")
    low: float = Field(description="Lower end of the 95 % interval.")
    high: float = Field(description="Upper end of the 95 % interval.")


class GuaranteeResult(Result):
    """What is bounded, under which assumption, by which data, and what is not claimed."""

    kind: str = Field(description='"marginal", "pac", "selective_risk", "joint" or "none".')
    holds: bool = Field(description="Whether anything is claimed.")
    event: str = Field(description="The error whose probability is bounded.")
    bound: float | None = Field(description="The bound on it; null when nothing is claimed.")
    conditioning: str = Field(description="Given what, and averaged over what, the bound holds.")
    assumption: str = Field(description="What must be true of the new score and the calibration set.")
    alpha: float | None = Field(description="Level of a false ACCEPT.")
    alpha_reject: float | None = Field(description="Level of a false REJECT.")
    delta: float | None = Field(description="Chance that an unlucky calibration set breaks the bound.")
    n0: int = Field(description="Insufficient rows that the thresholds rest on.")
    n1: int = Field(description="Sufficient rows that the thresholds rest on.")
    group: str | int | None = Field(description="The group that the bound is for.")
    collected: tuple[str, str] | None = Field(description="First and last day of the calibration set.")
    labeling_source: str | None = Field(description="Who or what decided on the labels.")
    negatives: dict[str, int] = Field(description="Kinds of insufficient rows and how many of each.")
    not_claimed: list[str] = Field(description="What a reader might believe and should not.")
    sentence: str = Field(description="All of it in one sentence, to be passed on as it is.")


def finite(number: float) -> float | None:
    """A number for JSON, which has no infinities: null, beside a flag that says so."""
    return None if math.isinf(number) else number
