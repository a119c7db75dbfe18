"""Mining: the funnel from commits to candidates and instances, with examples of what each filter dropped."""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from codetaste.benchmark.layout import CANDIDATES_FILE, MINING_FOLDER
from codetaste.core.files import read_text_file
from codetaste.core.text import printable
from codetaste.report.render.csv import render_csv
from codetaste.report.tables.funnel import funnel_reasons_table, funnel_table, steps_table
from codetaste.results.funnels import read_funnels, read_steps
from codetaste.site.html.address import file_name
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from codetaste.mining.funnel import FunnelRow
    from codetaste.report.table import Table
    from codetaste.results.read import RunResults
    from codetaste.site.site import Site

MINING = f"{MINING_FOLDER}/index.html"
_TABLES_FILE = f"{MINING_FOLDER}/tables.csv"
_MAX_CANDIDATES = 500
_MAX_CSV_BYTES = 64 * 1024**2
_SCORE = "combined_score"
_COLUMNS = ("owner", "repo", "commit_hash", "golden_commit_hash", _SCORE, "category", "language")


class MiningRun(NamedTuple):
    """One mining run: its name, its funnel, and its candidates, the best first."""

    name: str
    id: str
    rows: Sequence[FunnelRow]
    tables: Sequence[Table]
    candidates: Sequence[Sequence[str]]
    more: bool


def has_mining(results: RunResults) -> bool:
    """Return whether one of the runs has mined."""
    return any((root / MINING_FOLDER).is_dir() for root in results.roots)


def mining_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page with all funnels, and its tables as data."""
    yield SiteFile(MINING, partial(_page, site))
    yield SiteFile(_TABLES_FILE, partial(_tables_csv, site))


def _page(site: Site) -> bytes:
    return render_page(
        site,
        "construction/mining.html",
        MINING,
        "Mining",
        data=[("tables (CSV)", _TABLES_FILE)],
        steps=_steps(site),
        runs=list(_runs(site)),
        columns=[name.replace("_", " ") for name in _COLUMNS],
    )


def _tables_csv(site: Site) -> bytes:
    tables = [*_steps(site), *(table for run in _runs(site) for table in run.tables)]
    return render_csv(tables).encode("utf-8", "replace")


def _steps(site: Site) -> list[Table]:
    found = (read_steps(root) for root in site.results.roots)
    return [steps_table(steps) for steps in found if steps]


def _runs(site: Site) -> Iterator[MiningRun]:
    several = len(site.results.roots) > 1
    for root in site.results.roots:
        for name, rows in read_funnels(root).items():
            title = printable(f"{root.name}: {name}" if several else name)
            candidates = list(_candidates(root / MINING_FOLDER / name / CANDIDATES_FILE))
            tables = [funnel_table(rows), funnel_reasons_table(rows)]
            yield MiningRun(
                title,
                file_name(title),
                rows,
                [table for table in tables if table.rows],
                candidates[:_MAX_CANDIDATES],
                len(candidates) > _MAX_CANDIDATES,
            )


def _candidates(path: Path) -> Iterator[Sequence[str]]:
    """Yield the first candidates of a file, one more than a page shows."""
    try:
        text = read_text_file(path, _MAX_CSV_BYTES)
        for row in islice(csv.DictReader(io.StringIO(text)), _MAX_CANDIDATES + 1):
            yield [_shown(name, printable(row.get(name) or "")) for name in _COLUMNS]
    except (OSError, UnicodeDecodeError, csv.Error):
        return


def _shown(name: str, text: str) -> str:
    """Return a score with three decimals; other texts, and a score that is no number, as they are."""
    with suppress(ValueError):
        return f"{float(text):.3f}" if name == _SCORE else text
    return text
