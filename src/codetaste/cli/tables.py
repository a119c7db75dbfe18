"""Tables of a report as text on standard output or in files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from codetaste.console.streams import result_stream, width_of
from codetaste.core.files import write_atomically
from codetaste.errors import ConfigError
from codetaste.report.render.csv import render_csv
from codetaste.report.render.json import table_to_json
from codetaste.report.render.latex.render import render_latex
from codetaste.report.render.markdown import render_markdown
from codetaste.report.render.paper import PaperWidth
from codetaste.report.render.text import render_text
from codetaste.report.statistics.aggregate import Aggregation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.report.table import Table

TextFormat = Literal["text", "markdown", "latex", "csv"]
_SUFFIXES = {"text": "txt", "markdown": "md", "latex": "tex", "csv": "csv", "json": "json"}


def render_tables(tables: Sequence[Table], format_: str, place: PaperWidth = PaperWidth.PAGE) -> str:
    """Return tables as text in a format; plain text is as wide as the terminal, LaTeX as ``place``."""
    if format_ == "csv":
        return render_csv(tables)
    if format_ == "json":
        return json.dumps([table_to_json(table) for table in tables], indent=2)
    if format_ == "latex":
        return "\n\n".join(render_latex(table, place) for table in tables)
    if format_ == "markdown":
        return "\n\n".join(map(render_markdown, tables))
    width = width_of(result_stream())
    return "\n\n\n".join(render_text(table, width) for table in tables)


def write_tables(
    tables: Sequence[Table],
    formats: Sequence[str],
    folder: Path,
    option: str,
    place: PaperWidth = PaperWidth.PAGE,
) -> list[str]:
    """Write a file for each table and format; returns their paths. Tables in LaTeX are as wide as ``place``.

    Raises:
        ConfigError: the folder, the value of ``option``, cannot be made.
        StorageFull: no space is left.
        JournalError: a file cannot be written.
    """
    make_folder(folder, option)
    written = []
    for table in tables:
        suffix = f"-{table.aggregation}" if table.aggregation in set(Aggregation) else ""
        name = f"table-{table.name}" if table.name.isdecimal() else table.name
        for format_ in formats:
            path = folder / f"{name}{suffix}.{_SUFFIXES[format_]}"
            text = render_tables([table], format_, place)
            write_atomically(path, text if format_ == "csv" else f"{text}\n")
            written.append(str(path))
    return written


def make_folder(folder: Path, option: str) -> None:
    """Make the folder that the value of ``option`` names, unless it exists.

    Raises:
        ConfigError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{option}: {folder} cannot be created: {error.strerror}") from None
