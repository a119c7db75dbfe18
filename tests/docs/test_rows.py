"""docs/rows.md describes each column of the rows."""

from __future__ import annotations

from codetaste.results.load import ROW_KINDS
from codetaste.results.rows.schema import SCHEMA_VERSION, columns_of
from support.docs.row_columns import PAGE, render_page


def test_page_is_made_of_the_row_classes() -> None:
    text = PAGE.read_text("utf-8")
    assert text == render_page(text), "renew it: .venv/bin/python tests/support/docs/row_columns.py"


def test_page_names_the_version_of_the_schema() -> None:
    assert f"`schema_version` is {SCHEMA_VERSION}." in PAGE.read_text("utf-8")


def test_every_column_is_of_a_plain_type() -> None:
    columns = [column for kind in ROW_KINDS.values() for column in columns_of(kind)]
    assert {column.type for column in columns} == {str, int, float, bool}
