"""The schema of rows: their version, and the columns of each kind, which are the fields of its dataclass.

A value is text, a number, true or false, or several texts; None is unknown or does not apply, never 0.
``docs/rows.md`` lists the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
"""It grows when a column goes or changes its meaning; new columns may come at any time."""


class PlainRow(Protocol):
    """A frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[Mapping[str, Any]]


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


@cache
def columns_of(kind: type[PlainRow]) -> tuple[RowColumn, ...]:
    """Return the columns of a kind of rows, in their order."""
    hints = get_type_hints(kind)
    return tuple(_column(each.name, hints[each.name]) for each in fields(kind))


def _column(name: str, hint: Any) -> RowColumn:  # noqa: ANN401 - an annotation
    if get_origin(hint) is tuple:
        return RowColumn(name, str, several=True, nullable=False)
    options = [each for each in get_args(hint) or (hint,) if each is not type(None)]
    return RowColumn(name, options[0], several=False, nullable=len(get_args(hint)) > len(options))


def row_values(row: PlainRow) -> dict[str, Any]:
    """Return the values of a row by column, each of exactly the column's type."""
    return {
        each.name: value if value is None or each.several else each.type(value)
        for each in columns_of(type(row))
        for value in (getattr(row, each.name),)
    }
