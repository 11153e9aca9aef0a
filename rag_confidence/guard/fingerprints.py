"""A hash of what a scorer computes, so that scores of another scorer are not taken for its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, TypeAlias

import numpy as np

from rag_confidence import _artefact

_PACKAGE = "rag_confidence."
# Changes whenever a scorer of this package computes something else under the same name.
_EDITION = 1
_ATOMS = (str, bytes, int, float, complex, bool, type(None))
_SEQUENCES = (tuple, list)
_SETS = (set, frozenset)

_Seen: TypeAlias = tuple[int, ...]


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
    Numbers, texts, arrays, functions and containers of these count where the function closes over them, has
    them as defaults, or where the object holds them as attributes. Of any other value only its type counts,
    and of what a function calls by a global name only the name: give such a scorer a `version`.
    """
    return _artefact.digest([*_parts(function, ())])


def _parts(value: Any, seen: _Seen) -> Iterator[str]:
    """The texts that make up a value; of one that holds itself the inner mention is only its place."""
    if id(value) in seen:
        yield f"again {len(seen) - seen.index(id(value))}"
        return
    inside = (*seen, id(value))
    for kinds, of in _READERS:
        if isinstance(value, kinds):
            yield from of(value, inside)
            return
    yield from _of_object(value, inside)


def _of_atom(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"{type(value).__name__} {value!r}"


def _of_array(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"array {value.dtype} {np.shape(value)} {np.ascontiguousarray(value).tobytes().hex()}"


def _of_sequence(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"{type(value).__name__} {len(value)}"
    for entry in value:
        yield from _parts(entry, seen)


def _of_set(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"set {len(value)}"
    # Sets have no order that lasts beyond a process.
    yield from sorted(" ".join(_parts(entry, seen)) for entry in value)


def _of_mapping(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"mapping {len(value)}"
    yield from sorted(" ".join([*_parts(key, seen), *_parts(value[key], seen)]) for key in value)


def _of_type(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"type {value.__module__}.{value.__qualname__}"


def _of_builtin(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"builtin {value.__module__}.{value.__qualname__}"


def _of_code(code: CodeType, seen: _Seen) -> Iterator[str]:
    yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_flags}"
    yield from _of_sequence(code.co_consts, seen)


def _of_function(function: FunctionType, seen: _Seen) -> Iterator[str]:
    if function.__module__.startswith(_PACKAGE):
        yield f"function {_EDITION} {function.__module__}.{function.__qualname__}"
    else:
        yield from _of_code(function.__code__, seen)
    yield from _parts(function.__defaults__, seen)
    yield from _parts(function.__kwdefaults__, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:
            yield "empty cell"


def _of_method(method: MethodType, seen: _Seen) -> Iterator[str]:
    yield from _parts(method.__func__, seen)
    yield from _parts(method.__self__, seen)


def _of_partial(value: functools.partial[Any], seen: _Seen) -> Iterator[str]:
    for part in (value.func, value.args, value.keywords):
        yield from _parts(part, seen)


def _of_object(value: Any, seen: _Seen) -> Iterator[str]:
    """Of an object that is called its code and attributes; of another one, only what it is."""
    yield from _of_type(type(value), seen)
    call = getattr(type(value), "__call__", None)  # noqa: B004
    if isinstance(call, FunctionType):
        yield from _parts(call, seen)
        yield from _parts(getattr(value, "__dict__", None), seen)


_READERS: tuple[tuple[Any, Callable[[Any, _Seen], Iterator[str]]], ...] = (
    (_ATOMS, _of_atom),
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
