"""Data beside a page, for programs: exact numbers, in the units of the report's files."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from codetaste.report.render.csv import spreadsheet_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def csv_file(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    r"""Return rows as CSV (RFC 4180), lines ended by ``\r\n``; None is empty, and no text is a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([_plain(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def json_file(value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return JSON for programs, with every character that is not ASCII escaped."""
    return f"{json.dumps(value, indent=1)}\n".encode("ascii")


def _plain(value: object) -> object:
    if isinstance(value, str):
        return spreadsheet_safe(value)
    return "" if value is None else value
