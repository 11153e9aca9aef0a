"""Wrap a tool, so that a calibrator decides whether a call of it may run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack, overload

from rag_confidence._history import GroupName
from rag_confidence._options import check_callable, check_choice
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.guard.abstaining import OnAbstain, reaction_to
from rag_confidence.guard.contexts import NO_FACTS, ContextBuilder, describer
from rag_confidence.guard.guarding import Guard, guard_of
from rag_confidence.guard.recording import Store, recorder_for
from rag_confidence.guard.result import Decider, GuardResult
from rag_confidence.guard.signatures import AsyncGuarded, Awaited, Awaits, Guarded, Mode, P, WrapOptions
from rag_confidence.guard.tools import Tool, ToolKind, dressed, kind_of, name_of, unpacked

__all__ = ["guard_of", "guarded", "wrap"]


@overload
def wrap(
    tool: Callable[P, Awaits],
    calibrator: Decider,
    on_abstain: OnAbstain = ...,
    *,
    asynchronous: Literal[True] | None = ...,
    **options: Unpack[WrapOptions],
) -> Callable[P, Awaited]:
    """A tool that is awaited."""


@overload
def wrap(
    tool: Callable[P, Any],
    calibrator: Decider,
    on_abstain: OnAbstain = ...,
    *,
    asynchronous: Literal[True],
    **options: Unpack[WrapOptions],
) -> Callable[P, Awaited]:
    """A tool of which nothing shows that it is awaited."""


@overload
def wrap(
    tool: Callable[P, Any],
    calibrator: Decider,
    on_abstain: OnAbstain = ...,
    *,
    asynchronous: Literal[False] | None = ...,
    **options: Unpack[WrapOptions],
) -> Callable[P, GuardResult]:
    """A tool that is not awaited."""


def wrap(
    tool: Callable[..., Any],
    calibrator: Decider,
    on_abstain: OnAbstain = "escalate",
    *,
    context_builder: ContextBuilder | None = None,
    mode: Mode = "before",
    tool_name: str | None = None,
    store: Store | None = None,
    group: GroupName | None = None,
    asynchronous: bool | None = None,
) -> Any:
    """A function that is called like the tool, and runs it only where a calibrator accepts the call.

    Parameters
    ----------
    tool : callable
        A function, a generator function, either of them with ``async``, a method, a partial object, or an
        object with ``__call__``. Of a staticmethod or classmethod the result is one, too.
    calibrator : Decider
        A `Calibrator`, or whatever else has its `decide` and `adecide`.
    on_abstain : "escalate", "raise" or callable
        What becomes of a call that is not accepted. "escalate" returns the result, "raise" raises
        `AbstainedError` with it, and what a function of the result returns is the `output`. Such a function
        may be async where the tool is.
    context_builder : callable or None
        Makes the `ToolCallContext` from the arguments as they were given, the object of a method among them.
        One without positional parameters, such as ``lambda **kwargs: ...``, gets every argument by name,
        defaults included, without that object. None takes the arguments in the same way; there ``*args``
        and ``**kwargs`` are kept under their names.
    mode : "before" or "after"
        "before" judges the call, then runs it. "after" runs it, then judges it with the output as
        ``context.result``, for scorers that need it: the output of a call that is not accepted is `withheld`,
        but whatever the tool did is done.
    tool_name : str or None
        Name in contexts; None for the name of the function.
    store : Store or None
        Records every decision, for labels later: before the tool runs with "before", and after the call was
        judged with "after". For an awaited tool that happens in another thread.
    group : str or int or None
        Group of the recorded calls; None for that of the guarantee.
    asynchronous : bool or None
        True where calls must be awaited though nothing shows it; None looks at the tool.

    Returns
    -------
    function
        ``def`` for plain tools and generator functions, ``async def`` for those that are awaited and for
        async generators, with name, documentation, annotations and signature of the tool. It returns a
        `GuardResult`; of a stream `output` is the generator itself, of which nothing was taken. Its attribute
        `guard` is the `Guard`.

    Raises
    ------
    TypeError, ValueError
        For a tool, a store or an `on_abstain` that cannot work, and for a stream with ``mode="after"``.
    CalibrationMismatch
        Where the calibrator is for other tools.

    Notes
    -----
    The tool runs with the caller's own arguments, the scorers see copies. What the tool raises comes out
    untouched, cancellations too. Where the context cannot be made, because the builder raises or an argument
    cannot be copied, the call abstains and the tool does not run; the guarantee does not count such calls.
    With good calls alone it bounds the share of good calls that is not accepted, and not the share of bad
    calls that is.

    Examples
    --------
    >>> from rag_confidence.guard import ToolCallContext, calibrate
    >>> calls = [(ToolCallContext("search", {"query": "a" * size}), True) for size in range(1, 100)]
    >>> calibrator = calibrate(lambda call: len(call.args["query"]), calls, 0.1)
    >>> wrap(lambda query: query.upper(), calibrator, tool_name="search")("weather").output
    'WEATHER'
    """
    function, again = unpacked(tool)
    kind = kind_of(function, asynchronous)
    _check_mode(mode, kind)
    check_callable("context_builder", context_builder)
    name = _checked_name(function, tool_name, calibrator, named=context_builder is None)
    guard = Guard(
        function,
        _checked_decider(calibrator),
        name,
        kind,
        mode == "after",
        describer(function, name, context_builder),
        reaction_to(on_abstain, asynchronous=kind.asynchronous),
        recorder_for(store, name, calibrator, group),
    )
    return again(_function(guard))


@overload
def guarded(
    calibrator: Decider,
    on_abstain: OnAbstain = ...,
    *,
    asynchronous: Literal[False] | None = ...,
    **options: Unpack[WrapOptions],
) -> Guarded:
    """For tools that show how they are called."""


@overload
def guarded(
    calibrator: Decider,
    on_abstain: OnAbstain = ...,
    *,
    asynchronous: Literal[True],
    **options: Unpack[WrapOptions],
) -> AsyncGuarded:
    """For tools of which nothing shows that they are awaited."""


def guarded(calibrator: Decider, on_abstain: OnAbstain = "escalate", **options: Any) -> Any:
    """`wrap` as a decorator.

    Parameters
    ----------
    calibrator, on_abstain, **options
        As in `wrap`.

    Returns
    -------
    callable
        From a tool to the guarded tool; methods, staticmethods and classmethods stay what they are.

    Notes
    -----
    Mistakes in the options are found when a tool is decorated.
    """

    def decorate(tool: Any) -> Any:
        return wrap(tool, calibrator, on_abstain, **options)

    return decorate


def _function(guard: Guard) -> Tool:
    """A real function, so that it binds as a method and `inspect` sees whether it is awaited."""
    if guard.kind.asynchronous:

        async def guarded_tool(*args: Any, **kwargs: Any) -> GuardResult:
            return await guard.arun(args, kwargs, NO_FACTS)
    else:

        def guarded_tool(*args: Any, **kwargs: Any) -> GuardResult:  # type: ignore[misc]
            return guard.run(args, kwargs, NO_FACTS)

    wrapper: Any = dressed(guarded_tool, guard.tool)
    wrapper.guard = guard
    return wrapper  # type: ignore[no-any-return]


def _check_mode(mode: Mode, kind: ToolKind) -> None:
    check_choice("mode", mode, ("before", "after"))
    if kind.stream and mode == "after":
        raise ValueError(
            "`mode` must be 'before' for a tool that gives a stream; got 'after'. "
            "Judge the call, or wrap a function that collects the whole output."
        )


def _checked_decider(calibrator: Any) -> Decider:
    if callable(getattr(calibrator, "decide", None)) and callable(getattr(calibrator, "adecide", None)):
        return calibrator  # type: ignore[no-any-return]
    raise TypeError(
        f"`calibrator` must have the methods decide and adecide; got {type(calibrator).__name__}. "
        "Make one with calibrate()."
    )


def _checked_name(tool: Tool, tool_name: str | None, calibrator: Decider, *, named: bool) -> str:
    """Name of the tool, and a refusal where the calibrator does not know it.

    A context builder may give calls another name than the tool has.
    """
    name: Any = name_of(tool) if tool_name is None else tool_name
    if not isinstance(name, str) or not name:
        raise TypeError(f"`tool_name` must be a string that is not empty; got {name!r}. Name the tool.")
    known = getattr(calibrator, "tool_names", None)
    if known is not None and name not in known and (named or tool_name is not None):
        raise CalibrationMismatch(
            f"`tool_name` must be one that the calibrator is for ({', '.join(sorted(known))}); got {name!r}. "
            "Pass tool_name=, or calibrate on calls of this tool."
        )
    return name
