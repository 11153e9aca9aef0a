"""Two checks on one call, calibrated jointly: how sure the model was, and whether the arguments are valid.

One threshold for both keeps the share of good calls that is stopped at alpha, whatever the checks have in
common; `failed_checks` says which of them stopped a call. Needs the extra `schema`. Runs without a key: past
calls and responses are made up.

    python examples/logprob_schema_guard.py
"""

from __future__ import annotations

import json
import random
from typing import Any

from rag_confidence.guard import (
    ToolCallContext,
    ToolRegistry,
    calibrate,
    logprob_score,
    mean_logprob,
    schema_validity_score,
    wrap,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "account": {"type": "string", "pattern": "^[0-9]{4}$"},
        "euros": {"type": "number", "exclusiveMinimum": 0, "maximum": 500},
    },
    "required": ["account", "euros"],
    "additionalProperties": False,
}


def transfer(account: str, euros: float) -> str:
    """The tool."""
    return f"{euros:g} euros sent to {account}"


def past_calls(seed: int = 0) -> list[tuple[ToolCallContext, bool]]:
    """Made-up history: 300 good transfers with the log-probabilities of their tokens."""
    rng = random.Random(seed)
    return [(past_call(rng), True) for _ in range(300)]


def past_call(rng: random.Random) -> ToolCallContext:
    """A valid transfer of which the model was fairly sure; surer of some than of others."""
    doubt = rng.uniform(0.02, 0.6)
    logprobs = [-rng.expovariate(1 / doubt) for _ in range(12)]
    arguments = {"account": f"{rng.randrange(10_000):04}", "euros": rng.randint(1, 500)}
    return ToolCallContext("transfer", arguments, token_logprobs=logprobs)


def choice(arguments: dict[str, Any], logprob: float | None) -> dict[str, Any]:
    """One choice of a chat completion, with log-probabilities if the server gives them."""
    function = {"name": "transfer", "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    tokens = [{"token": "?", "logprob": logprob}] * 12
    return {
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "logprobs": None if logprob is None else {"content": tokens},
        "finish_reason": "tool_calls",
    }


def main() -> None:
    """Calibrate both checks at once, and try four calls."""
    checks = [logprob_score(mean_logprob), schema_validity_score({"transfer": SCHEMA})]
    calibrator = calibrate(checks, past_calls(), alpha=0.1)
    registry = ToolRegistry([wrap(transfer, calibrator)])
    print(f"Accepted up to {calibrator.threshold:.3f} in both checks. {calibrator.guarantee.sentence}\n")

    valid, odd = {"account": "0042", "euros": 25}, {"account": "my friend", "euros": 25}
    responses = {
        "valid, and sure": choice(valid, -0.1),
        "valid, and unsure": choice(valid, -3.0),
        "invalid, and sure": choice(odd, -0.1),
        "no log-probabilities": choice(valid, None),
    }
    for title, one in responses.items():
        (call,) = registry.handle_openai_choice(one)
        stopped = ", ".join(call.result.failed_checks) if call.result else ""
        print(f"{title:22}{call.status:11}failed checks: {stopped or 'none'}")
        print(f"{'':22}{call.message['content']}")


if __name__ == "__main__":
    main()
