"""Optional packages, imported when they are first needed or refused with one install sentence."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional module by name, or say which extra brings it.

    Parameters
    ----------
    module : str
        Dotted name of the module, for example ``"ripser"``.
    extra : str
        The extra of ``rag-confidence`` that installs it, for example ``"topology"``.

    Returns
    -------
    ModuleType
        The imported module.

    Raises
    ------
    ImportError
        If the package is not installed. An installed package that is broken keeps its own error.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ImportError(
            f"`{module}` is needed for the `{extra}` features; "
            f"install it with: pip install 'rag-confidence[{extra}]'",
            name=module,
        ) from error
