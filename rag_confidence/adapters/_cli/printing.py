"""What a command says: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rag_confidence.conformal.proportion import Proportion

NEGATIVE = 1

Part: TypeAlias = str | Table


def finish(as_json: bool, document: Any, parts: Iterable[Part], *, negative: bool = False) -> None:
    """Print the result in the form that was asked for, and end with the exit code that it has."""
    if as_json:
        write(f"{strict(document)}\n")
    else:
        show(*parts)
    if negative:
        raise typer.Exit(NEGATIVE)


def strict(document: Any) -> str:
    """One document of JSON as every parser reads it: without nan, infinity, or letters beyond ASCII."""
    return json.dumps(document, allow_nan=False)


def write(text: str) -> None:
    """Put a text on standard output."""
    sys.stdout.write(text)


def note(text: str) -> None:
    """Tell a person something that is no result."""
    sys.stderr.write(f"{one_line(text)}\n")


def one_line(text: object) -> str:
    """A text on one line, without the signs that would steer a terminal."""
    return printable(" ".join(str(text).split()))


def printable(text: str) -> str:
    """A text in which what no terminal should obey is written out as in Python."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)


def show(*parts: Part) -> None:
    """Print paragraphs and tables: plain text but for a terminal that shows colours."""
    # NO_COLOR keeps bold letters in Rich; here it means plain text.
    terminal = False if os.environ.get("NO_COLOR") else None
    console = Console(file=sys.stdout, force_terminal=terminal, highlight=False, markup=False, emoji=False)
    # Rich ends the process when a pipe closes; writing is therefore left to `write`.
    with console.capture() as captured:
        for part in parts:
            console.print(Text(printable(part)) if isinstance(part, str) else part)
    lines = captured.get().splitlines()
    write("".join(f"{line.rstrip()}\n" for line in lines))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: Sequence[str] = (),
    digits: int = 4,
) -> Table:
    """A table whose columns are numbers, to the right, but for those named in `left`."""
    found = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
    )
    for name in columns:
        side: Literal["left", "right"] = "left" if name in left else "right"
        found.add_column(name, justify=side, overflow="fold", header_style="bold")
    for row in rows:
        found.add_row(*(Text(cell(value, digits)) for value in row))
    return found


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Names beside values."""
    found = Table.grid(padding=(0, 2))
    found.add_column(style="bold", no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in pairs:
        found.add_row(name, Text(cell(value)))
    return found


def notes(sentences: Iterable[str]) -> list[Part]:
    """What speaks against a result, below it."""
    found: list[Part] = [f"Note: {sentence}" for sentence in sentences]
    return ["", *found] if found else []


def cell(value: object, digits: int = 4) -> str:
    """A value as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, digits)
    return one_line(value)


def number(value: float, digits: int = 4) -> str:
    """A number to some decimals, or as many digits where it is large; what is not finite by its name."""
    if not math.isfinite(value):
        return {math.inf: "infinite", -math.inf: "-infinite"}.get(value, "nan")
    return f"{value:.{digits}f}" if abs(value) < 10**digits else f"{value:.{digits}g}"


def finite(value: float) -> float | None:
    """A number for JSON, which has no infinities: null, beside a flag that says so."""
    return None if math.isinf(value) else value


def rate_table(rates: Mapping[str, Proportion]) -> Table:
    """Rates with their counts and exact intervals."""
    rows = (
        (name, f"{found.count}/{found.total}", found.rate, f"[{found.low:.4f}, {found.high:.4f}]")
        for name, found in rates.items()
    )
    return table(("rate of", "count", "rate", "95 % interval"), rows, left=("rate of",))
