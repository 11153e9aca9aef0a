"""A tool loop without a framework: every call that the model asks for is judged before it runs.

Runs without a key: the responses of the model are written below, in the shape of Chat Completions, and so are
the past calls, which are made up. With a real model, `model(conversation)` is a request.

    python examples/raw_tool_loop.py
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from rag_confidence.guard import LabelingSource, ToolCallContext, ToolRegistry, calibrate, wrap

STOCK = {"tea": 12, "rice": 3, "salt": 40}


def order(item: str, amount: int) -> dict[str, Any]:
    """The tool: it takes goods out of the store."""
    STOCK[item] -= amount
    return {"ordered": amount, "item": item, "left": STOCK[item]}


def amount_score(call: ToolCallContext) -> float:
    """How strange a call is: here simply how much it orders."""
    return float(call.args["amount"])


def past_calls(seed: int = 0) -> Iterator[tuple[ToolCallContext, bool]]:
    """Made-up history: 200 orders, small ones most of them, and all of them right in hindsight."""
    rng = random.Random(seed)
    for _ in range(200):
        yield ToolCallContext("order", {"item": "tea", "amount": 1 + int(rng.expovariate(0.2))}), True


def asks(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """One call as a model writes it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def scripted_model() -> Iterator[dict[str, Any]]:
    """Two responses: one that asks for five calls at once, and the last word."""
    calls = [
        asks("call_1", "order", json.dumps({"item": "tea", "amount": 4})),
        asks("call_2", "order", json.dumps({"item": "salt", "amount": 4000})),
        asks("call_3", "order", '{"item": "tea", "amount": '),
        asks("call_4", "cancel", "{}"),
        asks("call_5", "order", json.dumps({"item": "coffee", "amount": 2})),
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    yield {"message": message, "finish_reason": "tool_calls"}
    yield {"message": {"role": "assistant", "content": "4 tea are on their way."}, "finish_reason": "stop"}


def main() -> None:
    """Calibrate, wrap, and answer every call of the model until it makes none."""
    calibrator = calibrate(
        amount_score, past_calls(), alpha=0.1, labeling_source=LabelingSource.DETERMINISTIC
    )
    registry = ToolRegistry([wrap(order, calibrator)])
    print(f"An order of up to {calibrator.threshold:g} pieces runs. {calibrator.guarantee.sentence}\n")

    conversation: list[dict[str, Any]] = [{"role": "user", "content": "Order tea and salt."}]
    for choice in scripted_model():
        conversation.append(choice["message"])
        handled = registry.handle_openai_choice(choice)
        for call in handled:
            print(f"{call.call_id}  {call.status:20}  {call.message['content']}")
        # One answer a call, whatever became of it: without it the API refuses the next request.
        conversation.extend(handled.messages)
        if not handled:
            print(f"\nmodel: {choice['message']['content']}")
    print(f"stock: {STOCK}, messages: {len(conversation)}")


if __name__ == "__main__":
    main()
