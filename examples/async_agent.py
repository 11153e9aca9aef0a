"""An agent with async tools and an async judge: the calls of one response are judged and run side by side.

Runs without a key: judge, model and past calls are made up. A real judge asks a second model.

    python examples/async_agent.py
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from rag_confidence.guard import ToolCallContext, ToolRegistry, acalibrate, judge_score, wrap

STEPS: list[str] = []


async def judge(call: ToolCallContext) -> float:
    """Made-up judge, in [0, 1], high for good calls: it trusts cities that it knows, and short names."""
    await asyncio.sleep(0)
    known = {"Oslo": 0.97, "Lima": 0.95, "Atlantis": 0.02}
    return known.get(call.args["city"], max(0.0, 0.9 - len(call.args["city"]) / 100))


async def weather(city: str) -> dict[str, Any]:
    """The tool. It notes when it starts and ends, with some waiting between."""
    STEPS.append(f"{city} asked")
    for _ in range(10):
        await asyncio.sleep(0)
    STEPS.append(f"{city} answered")
    return {"city": city, "celsius": 11}


def past_calls(seed: int = 0) -> list[tuple[ToolCallContext, bool]]:
    """Made-up history: 150 good calls with names of 3 to 30 letters."""
    rng = random.Random(seed)
    names = ["x" * rng.randint(3, 30) for _ in range(150)]
    return [(ToolCallContext("weather", {"city": name}), True) for name in names]


def response() -> dict[str, Any]:
    """What the model asked for, in the shape of Anthropic's Messages API."""
    cities = enumerate(["Oslo", "Atlantis", "Lima"])
    blocks = [
        {"type": "tool_use", "id": f"toolu_{at}", "name": "weather", "input": {"city": city}}
        for at, city in cities
    ]
    return {"role": "assistant", "stop_reason": "tool_use", "content": blocks}


async def main() -> None:
    """Calibrate with the judge, and answer three calls at once."""
    calibrator = await acalibrate(judge_score(judge), past_calls(), alpha=0.1)
    print(f"A call runs if the judge gives it at least {1 - calibrator.threshold:.2f}.\n")
    registry = ToolRegistry([wrap(weather, calibrator)])

    message = response()
    handled = await registry.ahandle_anthropic_message(message)
    for call in handled:
        doubt = call.result.scores["judge"] if call.result else 1.0
        print(f"{call.call_id}  {call.status:10}  judge {1 - doubt:.2f}  {call.message['content']}")

    print(f"\nThe tool, side by side: {', '.join(STEPS)}.")

    # The results of one message go back together.
    conversation = [message, {"role": "user", "content": handled.messages}]
    failed = sum(block["is_error"] for block in conversation[-1]["content"])
    print(f"{len(handled)} answers in the order of the calls, {failed} marked as an error.")


if __name__ == "__main__":
    asyncio.run(main())
