"""The text model of the MCP server, and the policy that goes with it."""

from __future__ import annotations

import re
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag_confidence.adapters._mcp.embedding import EMBEDDER, WORDLLAMA_POLICY, embed

EVIDENCE = Path(__file__).resolve().parents[3] / "docs" / "evidence.md"


def test_the_policy_is_the_median_of_the_published_fits() -> None:
    """Centre, scale and top are those of the five public sets under this embedder, as the docs list them."""
    rows = re.findall(
        r"^\| \w+ / wordllama +\| (\d) / ([\d.]+) / ([\d.]+) ", EVIDENCE.read_text("utf-8"), re.M
    )
    top, center, scale = (statistics.median(map(float, column)) for column in zip(*rows, strict=True))
    assert len(rows) == 5
    policy = WORDLLAMA_POLICY
    assert (policy.grounding_top, policy.grounding_center, policy.grounding_scale) == (top, center, scale)


@pytest.mark.needs_extra("demo")
def test_threads_that_embed_at_once_get_what_one_gets() -> None:
    """The model is shared by the worker threads of the server; batches of any make give the same vectors."""
    texts = [f"sentence number {row} about bees and honey" * (row % 5 + 1) for row in range(40)]
    alone = embed(texts)
    assert alone.shape == (40, 256)
    assert "256" in EMBEDDER
    with ThreadPoolExecutor(8) as pool:
        for together in pool.map(embed, [texts] * 8):
            np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(embed(texts[7:8]), alone[7:8], rtol=1e-5, atol=1e-7)
