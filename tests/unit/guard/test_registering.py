"""What a registry is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from deciders import ShortQueries
from refusals import refuse

from rag_confidence.guard.registering import guards_of
from rag_confidence.guard.wrapping import guarded, wrap


def search(query: str) -> str:
    """Look it up."""
    return query


def words(query: str) -> Iterator[str]:
    """Word by word."""
    yield from query.split()


class Files:
    """Methods as tools."""

    @guarded(ShortQueries())
    def find(self, query: str) -> str:
        """One of an object."""
        return query

    @classmethod
    @guarded(ShortQueries())
    def all(cls, query: str) -> str:
        """One of the class."""
        return query

    @staticmethod
    @guarded(ShortQueries())
    def any(query: str) -> str:
        """One of neither."""
        return query


def test_tools_are_known_by_their_names_or_by_yours() -> None:
    """A list takes the names that wrap gave them, a dictionary its keys."""
    tool = wrap(search, ShortQueries())
    assert [*guards_of([tool, wrap(search, ShortQueries(), tool_name="find")])] == ["search", "find"]
    assert guards_of({"look_up": tool})["look_up"].tool_name == "search"
    assert [*guards_of(iter([tool]))] == ["search"]


def test_methods_keep_their_object() -> None:
    """Of an object, of a class, and of neither."""
    files = Files()
    guards = guards_of([files.find, Files.all, Files.any])
    assert [guard.bound for guard in guards.values()] == [(files,), (Files,), ()]


@pytest.mark.parametrize(
    ("tools", "pattern"),
    [
        ([search], r"`wrapped` must be a tool from wrap\(\); got function\. Wrap it first"),
        ({"search": search}, "Wrap it first"),
        (wrap(search, ShortQueries()), "`tools` must be wrapped tools; got function"),
        ("search", "`tools` must be wrapped tools; got str"),
        ({3: wrap(search, ShortQueries())}, "`tools` must have strings as names that are not empty; got 3"),
        ({"": wrap(search, ShortQueries())}, "`tools` must have strings as names"),
        ([wrap(words, ShortQueries())], "got words, which gives a stream"),
        ([Files.find], "got find, a method without one"),
    ],
)
def test_what_is_no_guarded_tool_is_refused(tools: Any, pattern: str) -> None:
    """When the registry is made, and not at the first call."""
    refuse(TypeError, pattern, lambda: guards_of(tools))


def test_names_are_used_once_and_there_is_one() -> None:
    """Which of two tools a model means would be a guess."""
    tool = wrap(search, ShortQueries())
    refuse(ValueError, "names of their own; got 'search' twice", lambda: guards_of([tool, tool]))
    refuse(ValueError, "at least one tool; got none", lambda: guards_of([]))
    refuse(ValueError, "at least one tool; got none", lambda: guards_of({}))
