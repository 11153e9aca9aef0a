"""What a check prints: Markdown tables, and a verdict a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Cell = str | float | int


@dataclass(frozen=True)
class Check:
    """One statement that the run found true or false."""

    statement: str
    passed: bool
    detail: str = ""

    def line(self) -> str:
        """The verdict in one line."""
        return f"{'PASS' if self.passed else 'FAIL'}  {self.statement}" + (
            f": {self.detail}" if self.detail else ""
        )


@dataclass(frozen=True)
class Table:
    """Rows under a title, with a note on how to read them."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def markdown(self) -> str:
        """Title, note and table, columns aligned."""
        cells = [[*map(str, self.header)], *([shown(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.header))]
        lines = [
            "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells
        ]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        return "\n".join([f"**{self.title}**", "", self.note, "", lines[0], rule, *lines[1:]])


@dataclass(frozen=True)
class Section:
    """Tables and checks on one question."""

    title: str
    tables: Sequence[Table] = ()
    checks: Sequence[Check] = ()
    skipped: str = ""

    def text(self) -> str:
        """The section as it is printed."""
        parts = [f"## {self.title}"]
        parts += [f"SKIPPED: {self.skipped}"] if self.skipped else []
        parts += [table.markdown() for table in self.tables]
        parts += (
            ["```text\n" + "\n".join(check.line() for check in self.checks) + "\n```"] if self.checks else []
        )
        return "\n\n".join(parts)

    def record(self) -> dict[str, Any]:
        """The section as plain values for JSON."""
        return asdict(self)


def shown(cell: Cell) -> str:
    """Three decimals for fractions, all digits for counts and words."""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
