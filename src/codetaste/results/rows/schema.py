"""The schema of rows: their version, and the columns of each kind, which are the fields of its dataclass.

A value is text, a number, true or false, or several texts; None is unknown or does not apply, never 0.
``docs/rows.md`` lists the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args, get_origin, get_type_hints

from codetaste.core.text import printable

SCHEMA_VERSION = 1
"""It grows when a column goes or changes its meaning; new columns may come at any time."""
_MAX_TEXT = 1000
_columns: dict[type[Any], tuple[RowColumn, ...]] = {}


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One column.

    Attributes:
        name: its name.
        type: str, int, float or bool; of a column with several texts it is str.
        several: whether a value is several texts.
        nullable: whether a value may be None.
    """

    name: str
    type: type
    several: bool
    nullable: bool


def columns_of(kind: type[Any]) -> tuple[RowColumn, ...]:
    """Return the columns of a kind of rows, which is a dataclass, in their order."""
    if kind not in _columns:
        hints = get_type_hints(kind)
        _columns[kind] = tuple(_column(each.name, hints[each.name]) for each in fields(kind))
    return _columns[kind]


def _column(name: str, hint: Any) -> RowColumn:  # noqa: ANN401 - an annotation
    if get_origin(hint) is tuple:
        return RowColumn(name, str, several=True, nullable=False)
    options = [each for each in get_args(hint) or (hint,) if each is not type(None)]
    return RowColumn(name, options[0], several=False, nullable=len(get_args(hint)) > len(options))


def row_values(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row of any kind
    """Return the values of a row by column, each of exactly the column's type, texts printable."""
    kind: Any = type(row)
    found: dict[str, Any] = {}
    for column in columns_of(kind):
        value = getattr(row, column.name)
        if column.several:
            value = tuple(map(_text, value))
        elif value is not None:
            value = _text(value) if column.type is str else column.type(value)
        found[column.name] = value
    return found


def _text(text: str) -> str:
    """Return untrusted text without control characters, which a terminal or a page could obey."""
    return str(text) if text.isprintable() else printable(text, _MAX_TEXT)
