"""How tests read a refusal: its class, what it names, and the one form that all errors have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# `name` must be ...; got .... Cure.
FORM = r"(?s)^`[\w.\[\]']+` must .+; got .+\. .+\.$"

Kinds = type[Exception] | tuple[type[Exception], ...]


def refuse(kind: Kinds, pattern: str, call: Callable[[], Any]) -> str:
    """The message of a refusal, of this class, that matches `pattern` and has the one form."""
    with pytest.raises(kind, match=pattern) as caught:
        call()
    with pytest.raises(Exception, match=FORM):
        raise caught.value
    return str(caught.value)


def named(value: object) -> str:
    """A name of a test's case that every process gives it: without the addresses that a repr may hold."""
    return re.sub(" at 0x[0-9a-f]+", "", str(value))


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings, where a test is not about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
