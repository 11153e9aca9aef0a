"""The page that the sections make together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

COMMAND = "python scripts/guard_validation.py --data ../shared/data --write"

INTRODUCTION = f"""\
# Does a guard keep its promise?

This page was printed and written by

```sh
{COMMAND}
```

in a few seconds. It checks the promises of [the tool guard](tool_guard.md) by repeated splits of calls into a
calibration part and a held-out part. Splits at random are exchangeable, so this says that the arithmetic is
right; it cannot say that tomorrow's calls are like today's.

A mean over many splits is held against the exact distribution of such a mean, at 99 %. The band of one split
is shown beside it: a single calibration set may lie anywhere in there. For 100 splits it is several times as
wide, and a mean that was held against it would pass after losing more than a point of coverage.
"""
_WIDTH = 115


@dataclass(frozen=True)
class Section:
    """A title, what to know, a Markdown table, and whether it shows what it should."""

    title: str
    text: str
    table: str
    sound: bool

    def markdown(self) -> str:
        """The section."""
        return f"## {self.title}\n\n{fill(self.text, _WIDTH)}\n\n{self.table}\n"


def page(sections: Sequence[Section]) -> str:
    """The whole page."""
    wrong = [section.title for section in sections if not section.sound]
    verdict = f"Not as it must be: {', '.join(wrong)}." if wrong else "Every row below is as it must be."
    return "\n".join([INTRODUCTION, f"**{verdict}**\n", *(section.markdown() for section in sections)])


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
