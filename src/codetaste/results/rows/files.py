"""Rows as the bytes of a file: CSV, JSON lines or Parquet, equal for equal rows."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, Literal

from codetaste.core.imports import import_package
from codetaste.report.render.csv import spreadsheet_safe
from codetaste.results.rows.schema import SCHEMA_VERSION, columns_of, row_values

if TYPE_CHECKING:
    from collections.abc import Sequence

RowFormat = Literal["csv", "jsonl", "parquet"]


def render_rows(kind: type[Any], rows: Sequence[Any], format_: RowFormat) -> bytes:
    """Return rows of one kind as the content of a file.

    Raises:
        ToolMissing: pyarrow, which writes Parquet, is not installed.
    """
    if format_ == "parquet":
        return _render_parquet(kind, rows)
    return _render_csv(kind, rows) if format_ == "csv" else _render_jsonl(rows)


def _render_csv(kind: type[Any], rows: Sequence[Any]) -> bytes:
    """Render RFC 4180: None is empty, several texts are a JSON list, no cell is a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(column.name for column in columns_of(kind))
    writer.writerows([_cell(value) for value in row_values(row).values()] for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> str:  # noqa: ANN401 - the value of a row
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return spreadsheet_safe(value) if isinstance(value, str) else repr(value)


def _render_jsonl(rows: Sequence[Any]) -> bytes:
    lines = (json.dumps(row_values(row), ensure_ascii=False, allow_nan=False) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def _render_parquet(kind: type[Any], rows: Sequence[Any]) -> bytes:
    pyarrow = import_package("pyarrow", "Parquet", "codetaste[report]")
    parquet = import_package("pyarrow.parquet", "Parquet", "codetaste[report]")
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema(
        [
            pyarrow.field(
                column.name,
                pyarrow.list_(pyarrow.string()) if column.several else types[column.type],
                nullable=column.nullable,
            )
            for column in columns_of(kind)
        ],
        metadata={"codetaste_schema_version": str(SCHEMA_VERSION)},
    )
    table = pyarrow.Table.from_pylist([row_values(row) for row in rows], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()
