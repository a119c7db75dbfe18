"""Rows as data frames of pandas and polars, where these are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.core.imports import import_package
from codetaste.results.rows.schema import columns_of, row_values

if TYPE_CHECKING:
    from collections.abc import Iterable

_PANDAS = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}
"""Types of pandas that know missing values; the usual ones turn a missing number into NaN."""


def to_pandas(kind: type[Any], rows: Iterable[Any]) -> Any:  # noqa: ANN401 - a data frame
    """Return rows as a data frame of pandas; a column with several texts has lists.

    Raises:
        ToolMissing: pandas is not installed.
    """
    pandas = import_package("pandas", "to_pandas")
    values = [row_values(row) for row in rows]
    return pandas.DataFrame(
        {
            column.name: pandas.Series(
                [each[column.name] for each in values],
                dtype="object" if column.several else _PANDAS[column.type],
            )
            for column in columns_of(kind)
        }
    )


def to_polars(kind: type[Any], rows: Iterable[Any]) -> Any:  # noqa: ANN401 - a data frame
    """Return rows as a data frame of polars.

    Raises:
        ToolMissing: polars is not installed.
    """
    polars = import_package("polars", "to_polars")
    types = {str: polars.String, int: polars.Int64, float: polars.Float64, bool: polars.Boolean}
    schema = {
        column.name: polars.List(polars.String) if column.several else types[column.type]
        for column in columns_of(kind)
    }
    return polars.DataFrame([row_values(row) for row in rows], schema=schema, orient="row")
