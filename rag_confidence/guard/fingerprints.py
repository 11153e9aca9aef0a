"""A hash of what a scorer computes, so that scores of another scorer are not taken for its own."""

from __future__ import annotations

import copyreg
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, TypeAlias

import numpy as np

from rag_confidence import _artefact

_PACKAGE = "rag_confidence."
# Changes whenever a scorer of this package computes something else under the same name.
_EDITION = 1
# Of what lies deeper only the type counts, so that recursion ends before Python ends it.
_DEEPEST = 60
_ATOMS = (str, bytes, int, float, complex, bool, type(None))
_SEQUENCES = (tuple, list)
_SETS = (set, frozenset)
_VALUES = (date, time, timedelta, Decimal, Fraction, Enum, PurePath, re.Pattern)


def fingerprint_of(function: Callable[..., Any]) -> str:
    """Hash of the code behind a callable, with its constants, defaults and plain values it was built with.

    Parameters
    ----------
    function : callable
        A function, method, partial, or an object that can be called.

    Returns
    -------
    str
        The same in every process of one Python version, because the byte code counts. A function of this
        package is known by its name instead.

    Notes
    -----
    Numbers, texts, times, patterns, arrays, functions, and containers and dataclasses of these count where
    the function closes over them, has them as defaults, or where the object holds them as attributes or would
    be pickled with them. Of any other value only its type counts,
    and of what a function calls by a global name only the name: give such a scorer a `version`.
    """
    return _Walk().of(function)


class _Walk:
    """Goes through a value and all that it holds, each part once."""

    def __init__(self) -> None:
        self._open: list[int] = []
        self._done: dict[int, str] = {}
        # What is looked at must not be freed while its id stands for it.
        self._kept: list[Any] = []

    def of(self, value: Any) -> str:
        """The text of a plain value, else a hash of its parts; of what holds itself, how far up it is."""
        if isinstance(value, _ATOMS):
            return f"{type(value).__name__} {value!r}"
        key = id(value)
        if key in self._done:
            return self._done[key]
        if key in self._open:
            return f"again {len(self._open) - self._open.index(key)}"
        if len(self._open) >= _DEEPEST:
            return f"deep {type(value).__qualname__}"
        self._open.append(key)
        self._kept.append(value)
        self._done[key] = _artefact.digest([*_reader_of(value)(value, self)])
        self._open.pop()
        return self._done[key]


def _reader_of(value: Any) -> _Reader:
    return next((reader for kinds, reader in _READERS if isinstance(value, kinds)), _of_object)


def _of_array(value: Any, walk: _Walk) -> Iterator[str]:
    if value.dtype.hasobject:
        # Its bytes are addresses.
        yield f"array of objects {np.shape(value)}"
        yield walk.of(value.tolist())
    else:
        yield f"array {value.dtype} {np.shape(value)} {np.ascontiguousarray(value).tobytes().hex()}"


def _of_sequence(value: Any, walk: _Walk) -> Iterator[str]:
    yield type(value).__name__
    yield from map(walk.of, value)


def _of_set(value: Any, walk: _Walk) -> Iterator[str]:
    # Sets have no order that lasts beyond a process.
    yield "set"
    yield from sorted(map(walk.of, value))


def _of_mapping(value: Any, walk: _Walk) -> Iterator[str]:
    yield "mapping"
    yield from sorted(f"{walk.of(key)}: {walk.of(value[key])}" for key in value)


def _of_type(value: Any, walk: _Walk) -> Iterator[str]:
    yield f"type {value.__module__}.{value.__qualname__}"


def _of_builtin(value: Any, walk: _Walk) -> Iterator[str]:
    yield f"builtin {value.__module__}.{value.__qualname__}"
    # The object of a method, such as that of a compiled pattern.
    if not isinstance(value.__self__, ModuleType | type(None)):
        yield walk.of(value.__self__)


def _of_code(code: CodeType, walk: _Walk) -> Iterator[str]:
    yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_flags}"
    yield from map(walk.of, code.co_consts)


def _of_function(function: FunctionType, walk: _Walk) -> Iterator[str]:
    if (function.__module__ or "").startswith(_PACKAGE):
        yield f"function {_EDITION} {function.__module__}.{function.__qualname__}"
    else:
        yield walk.of(function.__code__)
    yield walk.of(function.__defaults__)
    yield walk.of(function.__kwdefaults__)
    for cell in function.__closure__ or ():
        try:
            yield walk.of(cell.cell_contents)
        except ValueError:
            yield "empty cell"


def _of_method(method: MethodType, walk: _Walk) -> Iterator[str]:
    yield walk.of(method.__func__)
    yield walk.of(method.__self__)


def _of_partial(value: functools.partial[Any], walk: _Walk) -> Iterator[str]:
    yield from map(walk.of, (value.func, value.args, value.keywords))


def _of_object(value: Any, walk: _Walk) -> Iterator[str]:
    """Of an object that is called its code and attributes; of a plain value its parts, else only its type."""
    yield from _of_type(type(value), walk)
    call = getattr(type(value), "__call__", None)  # noqa: B004
    if isinstance(call, FunctionType):
        yield walk.of(call)
        yield walk.of(getattr(value, "__dict__", None))
        yield walk.of(_slots_of(value))
    elif callable(value) or is_dataclass(value) or isinstance(value, _VALUES):
        # Of a function behind a cache, and of a staticmethod, the code counts.
        yield walk.of(getattr(value, "__wrapped__", None))
        yield walk.of(_parts_of(value))


def _slots_of(value: Any) -> dict[str, Any]:
    """Attributes that stand in no dictionary."""
    found = {}
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, MemberDescriptorType) and hasattr(value, member.__name__):
                found[name] = member.__get__(value)
    return found


def _parts_of(value: Any) -> Any:
    """What it would be pickled as, or nothing: a name, or what to call with which values, and the state."""
    reduced = copyreg.dispatch_table.get(type(value))
    try:
        parts = value.__reduce_ex__(2) if reduced is None else reduced(value)
    except Exception:  # noqa: BLE001
        # Methods of a user's own class run here, and those that cannot be taken apart raise what they like.
        return None
    return parts if isinstance(parts, str) else parts[:3]


_Reader: TypeAlias = Callable[[Any, _Walk], Iterator[str]]
_READERS: tuple[tuple[Any, _Reader], ...] = (
    ((np.ndarray, np.generic), _of_array),
    (_SEQUENCES, _of_sequence),
    (_SETS, _of_set),
    (Mapping, _of_mapping),
    (type, _of_type),
    (CodeType, _of_code),
    (FunctionType, _of_function),
    (MethodType, _of_method),
    (functools.partial, _of_partial),
    (BuiltinFunctionType, _of_builtin),
)
