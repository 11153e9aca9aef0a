"""How much one call may bring, and the types of arguments that say so in their schema.

The schema states types and sizes for the client. Sizes are enforced here; what the entries must be is left
to the library, so that a caller over the protocol reads the same sentence as a caller in Python.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Field, WithJsonSchema

from rag_confidence._history import check_fractions, check_scores

MAX_SCORES = 50_000
MAX_DECISIONS = 10_000
MAX_PASSAGES = 200
MAX_DIMENSIONS = 4_096
MAX_NUMBERS = 400_000
MAX_CHARACTERS = 1_000_000
MAX_CHARACTERS_EACH = 20_000
MAX_REQUEST_BYTES = 16 * 1024 * 1024

_NUMBER: dict[str, Any] = {"type": "number"}
_LABEL: dict[str, Any] = {"type": "integer", "enum": [0, 1]}
_TEXT: dict[str, Any] = {"type": "string"}
_NAME: dict[str, Any] = {"type": ["string", "integer"]}


def _list_of(items: dict[str, Any], most: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": items, "maxItems": most})


Number: TypeAlias = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Scores: TypeAlias = Annotated[list[Any], Field(max_length=MAX_SCORES), _list_of(_NUMBER, MAX_SCORES)]
FewScores: TypeAlias = Annotated[list[Any], Field(max_length=MAX_DECISIONS), _list_of(_NUMBER, MAX_DECISIONS)]
Labels: TypeAlias = Annotated[list[Any], Field(max_length=MAX_SCORES), _list_of(_LABEL, MAX_SCORES)]
Names: TypeAlias = Annotated[list[Any], Field(max_length=MAX_SCORES), _list_of(_NAME, MAX_SCORES)]
TextRows: TypeAlias = Annotated[list[Any], Field(max_length=MAX_SCORES), _list_of(_TEXT, MAX_SCORES)]
Vector: TypeAlias = Annotated[list[Any], Field(max_length=MAX_DIMENSIONS), _list_of(_NUMBER, MAX_DIMENSIONS)]
Vectors: TypeAlias = Annotated[
    list[Any], Field(max_length=MAX_PASSAGES), _list_of({"type": "array", "items": _NUMBER}, MAX_PASSAGES)
]
Texts: TypeAlias = Annotated[list[Any], Field(max_length=MAX_PASSAGES), _list_of(_TEXT, MAX_PASSAGES)]
Parents: TypeAlias = Annotated[
    list[Any], Field(max_length=MAX_PASSAGES), _list_of({"type": ["integer", "null"]}, MAX_PASSAGES)
]

History: TypeAlias = Annotated[
    Scores, Field(description="Scores of labelled retrievals, fractions in [0, 1]; high is good.")
]
Judged: TypeAlias = Annotated[
    Labels, Field(description="1 where the evidence was sufficient to answer, 0 where not.")
]


def check_unit(name: str, scores: list[Any]) -> None:
    """Refuse scores that are no fractions: the loose thresholds of these tools have no other scale."""
    cure = "Map other scales to [0, 1] by any increasing function: the decisions stay the same."
    check_fractions(name, check_scores(name, scores), cure)


def check_numbers(name: str, rows: list[Any]) -> None:
    """Refuse vectors that hold more numbers than one call may bring."""
    count = sum(len(row) for row in rows if isinstance(row, list))
    if count > MAX_NUMBERS:
        raise ValueError(
            f"`{name}` must hold at most {MAX_NUMBERS} numbers in all; got {count}. "
            "Send fewer passages, or use the Python library."
        )


def check_texts(name: str, texts: list[Any] | None) -> list[str] | None:
    """`texts` as they came, refused when they are no strings or longer than one call may bring."""
    if texts is None:
        return None
    for entry in texts:
        if not isinstance(entry, str):
            raise TypeError(
                f"`{name}` must hold strings; got {type(entry).__name__}. Pass one text an entry."
            )
        if len(entry) > MAX_CHARACTERS_EACH:
            raise ValueError(
                f"`{name}` must hold texts of at most {MAX_CHARACTERS_EACH} characters; got one of "
                f"{len(entry)}. Send passages, not documents."
            )
    count = sum(map(len, texts))
    if count > MAX_CHARACTERS:
        raise ValueError(
            f"`{name}` must hold at most {MAX_CHARACTERS} characters in all; got {count}. Send fewer texts."
        )
    return texts
