"""The whole loop over real HTTP: a local stub speaks the protocol of OpenAI's Chat Completions.

The stub runs in a thread on 127.0.0.1, and stands for a server such as vLLM or Ollama. The client is the
openai SDK where that is installed, and urllib otherwise. Past calls and the model's words are made up.

    python examples/http_tool_server.py
"""

from __future__ import annotations

import importlib.util
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rag_confidence.guard import (
    NoToolCallProducedError,
    ToolCallContext,
    ToolRegistry,
    calibrate,
    logprob_score,
    mean_logprob,
    wrap,
)

Complete = Callable[[list[Any]], Any]
"""From a conversation to one choice."""

TOOLS: list[Any] = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]


class Stub(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions: first two calls of a tool, then a sentence."""

    def do_POST(self) -> None:
        """One completion."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(completion(request["messages"])).encode()
        self.send_response(200 if self.path == "/v1/chat/completions" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the log of requests out of the example's output."""


def completion(messages: list[Any]) -> dict[str, Any]:
    """What the stub's model says: calls after the user's words, a sentence after their results."""
    choice = last_word() if messages[-1]["role"] == "tool" else first_calls(messages[-1]["content"])
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice]}


def last_word() -> dict[str, Any]:
    """The choice that ends a conversation."""
    return {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}


def first_calls(words: str) -> dict[str, Any]:
    """A choice with two calls, of which the model is unsure where it is about passwords."""
    calls = [asks(at, path) for at, path in enumerate(["notes.txt", "todo.txt"])]
    logprob = -2.5 if "passwords" in words else -0.05
    return {
        "index": 0,
        "message": {"role": "assistant", "content": None, "tool_calls": calls},
        "logprobs": {"content": [{"token": "?", "logprob": logprob, "top_logprobs": []}] * 20},
        "finish_reason": "tool_calls",
    }


def asks(at: int, path: str) -> dict[str, Any]:
    """One call as the protocol writes it."""
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return {"id": f"call_{at}", "type": "function", "function": function}


@contextmanager
def served() -> Iterator[str]:
    """The address of the stub, which is gone afterwards, with its thread."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Stub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def client(address: str) -> Iterator[Complete]:
    """What asks the server for a choice: the SDK where it is installed, else urllib."""
    if importlib.util.find_spec("openai") is None:
        yield lambda messages: post(address, messages)
        return
    import openai

    with openai.OpenAI(base_url=address, api_key="not needed") as sdk:

        def complete(messages: list[Any]) -> Any:
            answer = sdk.chat.completions.create(model="stub", messages=messages, tools=TOOLS, logprobs=True)
            return answer.choices[0]

        yield complete


def post(address: str, messages: list[Any]) -> Any:
    """One request without the SDK."""
    body = json.dumps({"model": "stub", "messages": messages, "tools": TOOLS, "logprobs": True}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["choices"][0]


def read_file(path: str) -> str:
    """The tool, of a file system that is made up."""
    return f"text of {path}"


def past_calls() -> Iterator[tuple[ToolCallContext, bool]]:
    """Made-up history: 100 good calls, of most of which the model was sure."""
    for at in range(100):
        yield ToolCallContext("read_file", {"path": "a.txt"}, token_logprobs=[-at / 100] * 20), True


def converse(complete: Complete, registry: ToolRegistry, words: str) -> None:
    """Ask until the model makes no more calls."""
    print(f"user: {words}")
    messages: list[Any] = [{"role": "user", "content": words}]
    while True:
        choice = complete(messages)
        handled = registry.handle_openai_choice(choice)
        if not handled:
            break
        for call in handled:
            print(f"  {call.call_id}  {call.status:10}  {call.message['content']}")
        messages += [choice["message"] if isinstance(choice, dict) else choice.message, *handled.messages]
    try:
        registry.handle_openai_choice(choice, required=True)
    except NoToolCallProducedError as error:
        print(f"model: {error.content} (finish reason {error.finish_reason})\n")


def main() -> None:
    """Serve, converse twice, and shut down."""
    calibrator = calibrate(logprob_score(mean_logprob), past_calls(), alpha=0.1)
    registry = ToolRegistry([wrap(read_file, calibrator)])
    with served() as address, client(address) as complete:
        converse(complete, registry, "Read my notes and my list.")
        converse(complete, registry, "Read my passwords.")
    print("The server is gone.")


if __name__ == "__main__":
    main()
