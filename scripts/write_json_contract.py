"""Write docs/json_contract.md and docs/metrics.schema.json from the list of keys in the package.

    python scripts/write_json_contract.py
    python scripts/write_json_contract.py --check

With --check nothing is written, and the exit code is 1 if a file is not up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_confidence.product.record import KEYS, SCHEMA_VERSION, Key, json_schema

DOCS = Path(__file__).resolve().parents[1] / "docs"

GROUPS = (
    ("Verdict, KPI and context", ""),
    ("Weights", "weights."),
    ("Signals, unrounded", "signals."),
    ("Evidence", "evidence."),
)
"""Heading and prefix of each table; the first one takes the keys without a prefix."""

INTRODUCTION = """# JSON contract

<!-- Written by scripts/write_json_contract.py: change the script or the package, not this file. -->

`to_dict()` returns one flat dictionary of plain Python values. It always has the same {count} keys, in the
order of the tables below. It holds no nan and no infinity, so `json.dumps(..., allow_nan=False)` works. The
same list of keys makes this page, the JSON Schema in [metrics.schema.json](metrics.schema.json) and the
checks of `from_dict`. [Metrics](metrics.md) explains what the values mean.

## Versions

This page describes `schema_version` {version}.

- A key is never renamed, removed or given another type or meaning under one version.
- Any change of the set of keys, of a type, of a range or of a list of words gets a new `schema_version`.
- `from_dict` reads its own version only, and says so when it meets another one.
- The version of the package is something else: a release may change sentences and how a number is computed.
  `policy_fingerprint` tells records apart that were made under different constants.
- Branch on `verdict` and `reason_code`. The wording of `verdict_action`, `verdict_reason` and `warnings` may
  change at any time.

## Units and rounding

- Keys without a prefix show percentages for people: 0 to 100, one decimal as a rule, high is good.
- `p_sufficient` and everything under `weights.`, `signals.` and `evidence.` are not rounded. `kpi` has twelve
  decimals, so that a log and a server meet the same number (but for rare ones that lie where the rounding
  changes). Fit gates and calibrators on `kpi`.
- `decision` is written in capitals, "ACCEPT": here, in `batch.columns()` and by the MCP server. In Python
  `m.decision`, `batch.decision` and predictions hold a `Decision` or its string, "accept".
- Words (verdict, bands, risks) come from unrounded values.
- A shown percentage never contradicts the word beside it. It is rounded to one decimal, or down where
  rounding up would cross a threshold: 64.97 is shown as 64.9 when 65 is a threshold. Where one decimal cannot
  keep it on its side of every threshold it gets more: 64.93 stays 64.93 when 64.92 is a threshold.

## What null means

Null means *not assessed* or *does not apply*. It never means 0, and a signal that was not measured is never
shown as 0 or 100. Only `kpi` has no null: it is 0 where there was nothing to score. For example
`query_robustness` is null for a single passage, `evidence.focus_depth` is null on flat lists, and all loop
keys are null unless `loops` was asked for. Keys are never left out.

Two keys say it in plain words. `grounding_assessed` is false for lexical vectors, and
`contradiction_assessed` without a `contradiction` function; both are false where there was nothing to score.

## Read a record back

`from_dict` checks every key against this contract and refuses what it does not allow. The way there and
back loses nothing: `from_dict(d).to_dict() == d`. Texts, support snippets and the question are not part of
the record.

```python
import json

from rag_confidence import RagConfidenceMetrics, json_schema, score

line = json.dumps(score([1.0, 0.2], [[0.9, 0.3], [0.7, 0.1]]).to_dict(), allow_nan=False)
metrics = RagConfidenceMetrics.from_dict(json.loads(line))
print(metrics.verdict, metrics.to_dict() == json.loads(line), len(json_schema()["required"]))
```

```text
ANSWER True {count}
```
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or compare them with what is there; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the JSON contract and its schema into docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    check = parser.parse_args(arguments).check
    pages = {DOCS / "json_contract.md": contract(), DOCS / "metrics.schema.json": schema()}
    if not check:
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in pages.items() if _read(path) != text]
    for path in stale:
        print(f"docs/{path.name} is stale; run python scripts/write_json_contract.py", file=sys.stderr)
    return 1 if stale else 0


def contract() -> str:
    """The Markdown page: what holds for all keys, then a table for each group of them."""
    tables = [f"## {title}\n\n{table(_group(prefix))}" for title, prefix in GROUPS]
    introduction = INTRODUCTION.replace("{count}", str(len(KEYS))).replace("{version}", SCHEMA_VERSION)
    return introduction + "\n" + "\n\n".join(tables) + "\n"


def schema() -> str:
    """The JSON Schema as text."""
    return json.dumps(json_schema(), indent=2, allow_nan=False) + "\n"


def table(keys: Iterable[Key]) -> str:
    """One row a key."""
    head = ["| key | type | may be null | values | meaning |", "|---|---|---|---|---|"]
    return "\n".join(head + [row(key) for key in keys])


def row(key: Key) -> str:
    """The line of one key."""
    null = "yes" if key.nullable else "no"
    return f"| `{key.name}` | {key.kind} | {null} | {values(key)} | {_cell(key.meaning)} |"


def values(key: Key) -> str:
    """The words or the range that a key allows, empty if there is no limit."""
    if key.words:
        return ", ".join(f"`{word}`" for word in key.words)
    if key.low is None and key.high is None:
        return ""
    if key.high is None:
        return f"at least {key.low:g}"
    return f"{key.low:g} to {key.high:g}"


def _group(prefix: str) -> list[Key]:
    if prefix:
        return [key for key in KEYS if key.name.startswith(prefix)]
    return [key for key in KEYS if "." not in key.name]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
