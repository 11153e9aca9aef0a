"""What scorers see of a call: its arguments by name, and what the response of the model said of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.scorers import discard, said_by

ContextBuilder = Callable[..., ToolCallContext]

_P = inspect.Parameter
_POSITIONAL = (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)
_ANY_ARGUMENTS = inspect.Signature([_P("args", _P.VAR_POSITIONAL), _P("kwargs", _P.VAR_KEYWORD)])
_OBJECTS = ("self", "cls")


@dataclass(frozen=True)
class ResponseFacts:
    """What is known of a call beside its arguments, from the response that asked for it.

    Attributes
    ----------
    call_id : str or None
        Name of the call in that response.
    token_logprobs : tuple of float, or None
        Log-probabilities of its tokens; None where the API gave none.
    judge_score : float or None
        What a judge said, in [0, 1], high is good.
    metadata : mapping of str to anything
        Whatever else scorers need.

    Notes
    -----
    They fill in what a context builder left empty; an entry of its metadata comes before one of the same name
    here.
    """

    call_id: str | None = None
    token_logprobs: tuple[float, ...] | None = None
    judge_score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


NO_FACTS = ResponseFacts()


class Parameters:
    """The parameters of a tool: what binds the arguments of a call to their names.

    Parameters
    ----------
    tool : callable
        Where its signature is unknown, as of some functions written in C, every call fits, and its arguments
        are named `args` and `kwargs`.
    name : str
        What messages call it.

    Attributes
    ----------
    defaults : dict
        Values of arguments that a call leaves out.
    extra : str or None
        Name under which the tool takes keywords that it has no parameter for.
    """

    def __init__(self, tool: Callable[..., Any], name: str) -> None:
        self._name = name
        self._tool = tool
        self._signature = _signature_of(tool)
        found = [*self._signature.parameters.values()]
        self._object = bool(found) and found[0].name in _OBJECTS and found[0].kind in _POSITIONAL
        self._names = tuple(parameter.name for parameter in found)
        self._set = frozenset(self._names)
        self._positional = sum(parameter.kind in _POSITIONAL for parameter in found)
        self.extra = next((parameter.name for parameter in found if parameter.kind is _P.VAR_KEYWORD), None)
        self._plain = all(
            parameter.kind in (_P.POSITIONAL_OR_KEYWORD, _P.KEYWORD_ONLY) for parameter in found
        )
        self.defaults = {
            parameter.name: parameter.default for parameter in found if parameter.default is not _P.empty
        }

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, defaults included, without the object that a method belongs to.

        Raises
        ------
        TypeError
            Where the tool would raise one, because the arguments do not fit it.
        """
        values = self._quickly(args, kwargs) if self._plain else None
        if values is None:
            values = self._slowly(args, kwargs)
        if self._object and args:
            # By position only: a keyword of this name is an argument like any other.
            values.pop(self._names[0], None)
        return values

    def _quickly(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """What `inspect` finds for parameters without stars, sooner; None where they do not fit."""
        given = len(args)
        if given > self._positional or not self._set.issuperset(kwargs):
            return None
        values = {**self.defaults, **kwargs}
        if given:
            first = self._names[:given]
            if not kwargs.keys().isdisjoint(first):
                return None
            values.update(zip(first, args, strict=True))
        return values if len(values) == len(self._names) else None

    def _slowly(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            values, message = self._as_called(args, kwargs), f"{self._name}() {error}"
        else:
            bound.apply_defaults()
            return bound.arguments
        if values is None:
            raise TypeError(message)
        return values

    def _as_called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Arguments by name for a decorator that adds some of its own to those of the function it shows.

        None where one has no name, because it is anyone's guess which parameter it is for.
        """
        if not hasattr(self._tool, "__wrapped__"):
            return None
        own = _signature_of(self._tool, follow_wrapped=False)
        by_kind = {parameter.kind: parameter.name for parameter in own.parameters.values()}
        try:
            values = own.bind(*args, **kwargs).arguments
        except TypeError:
            return None
        if values.get(by_kind.get(_P.VAR_POSITIONAL, "")):
            return None
        return _merged(values, values.pop(by_kind.get(_P.VAR_KEYWORD, ""), {}))


@dataclass(frozen=True)
class Describer:
    """Makes the context of a call.

    Attributes
    ----------
    tool_name : str
    parameters : Parameters
    builder : callable or None
        The user's, from the arguments of the call; None for arguments by name.
    by_name : bool
        Whether the builder takes no positional argument, and so gets every argument by name.
    """

    tool_name: str
    parameters: Parameters
    builder: ContextBuilder | None = None
    by_name: bool = False

    def __call__(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], facts: ResponseFacts
    ) -> ToolCallContext | str:
        """The context; what went wrong, where it cannot be made.

        Raises
        ------
        TypeError
            Where the arguments do not fit the tool.
        """
        named = self.parameters.bound(args, kwargs)
        try:
            if self.builder is None:
                return self._plain(named, facts)
            return self._built(self.builder, (args, kwargs), named, facts)
        except Exception as error:  # noqa: BLE001
            return _said(error)

    def _plain(self, named: dict[str, Any], facts: ResponseFacts) -> ToolCallContext:
        if facts is NO_FACTS:
            return ToolCallContext(self.tool_name, named)
        return ToolCallContext(
            self.tool_name,
            named,
            token_logprobs=facts.token_logprobs,
            judge_score=facts.judge_score,
            call_id=facts.call_id,
            metadata=facts.metadata,
        )

    def _built(
        self,
        builder: ContextBuilder,
        call: tuple[tuple[Any, ...], Mapping[str, Any]],
        named: dict[str, Any],
        facts: ResponseFacts,
    ) -> ToolCallContext:
        args, kwargs = call
        if self.by_name:
            extra = named.pop(self.parameters.extra or "", {})
            args, kwargs = (), _merged(named, extra)
        context: Any = builder(*args, **kwargs)
        if not isinstance(context, ToolCallContext):
            if inspect.isawaitable(context):
                discard(context)
            raise TypeError(f"the context builder returned {_kind(context)} instead of a ToolCallContext")
        return context if facts is NO_FACTS else _filled(context, facts)


def describer(tool: Callable[..., Any], tool_name: str, builder: ContextBuilder | None) -> Describer:
    """What makes the contexts of a tool's calls, with the user's builder or by binding its parameters.

    Raises
    ------
    TypeError
        Without a builder, for a default of the tool that cannot be copied.
    """
    parameters = Parameters(tool, tool_name)
    if builder is None:
        # Otherwise every call that leaves such an argument out would abstain.
        ToolCallContext(tool_name, parameters.defaults)
        return Describer(tool_name, parameters)
    kinds = {parameter.kind for parameter in _signature_of(builder).parameters.values()}
    return Describer(tool_name, parameters, builder, kinds.isdisjoint({*_POSITIONAL, _P.VAR_POSITIONAL}))


def with_output(context: ToolCallContext, output: Any) -> ToolCallContext | str:
    """The context of a call that ran, with a copy of what it returned; what went wrong, if it has none."""
    try:
        return context.with_result(deepcopy(output))
    except Exception as error:  # noqa: BLE001
        return f"its output cannot be copied, {_said(error)}"


def _merged(named: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments by name. A keyword may repeat the name of a parameter that is given by position only."""
    twice = sorted(named.keys() & extra.keys())
    if twice:
        raise TypeError(f"arguments of the same name cannot be told apart: {', '.join(twice)}")
    return {**named, **extra}


def _filled(context: ToolCallContext, facts: ResponseFacts) -> ToolCallContext:
    """A context with what the response said, where the builder said nothing."""
    either: dict[str, Any] = {
        name: getattr(facts, name) if getattr(context, name) is None else getattr(context, name)
        for name in ("call_id", "token_logprobs", "judge_score")
    }
    return replace(context, **either, metadata={**facts.metadata, **context.metadata})


def _signature_of(function: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    try:
        return inspect.signature(function, follow_wrapped=follow_wrapped)
    except (TypeError, ValueError):
        return _ANY_ARGUMENTS


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {said_by(error)}"


def _kind(value: Any) -> str:
    return "a coroutine" if inspect.iscoroutine(value) else type(value).__name__
