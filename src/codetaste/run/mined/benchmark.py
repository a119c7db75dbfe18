"""The benchmark folder that mined candidates make, which the other flows of the run work on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.benchmark.instances_csv import format_table
from codetaste.benchmark.layout import INSTANCES_FILE
from codetaste.core.files import write_atomically
from codetaste.flows.describe.change import write_change
from codetaste.mining.prefilter.selection import split_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.describe.change import ChangeTexts
    from codetaste.flows.mine.candidates import MinedCandidate


def write_mined_benchmark(
    root: Path,
    candidates: Sequence[MinedCandidate],
    texts: Mapping[str, ChangeTexts],
    test_share: float | None = None,
) -> None:
    """Write the table of instances of the benchmark in ``root``, and ``texts`` by instance id; blocking.

    The table has the licence and the date of each, where they are known; with ``test_share`` also the part of
    the benchmark that its repository belongs to.

    Raises:
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    rows = [replace(each.instance, extra=_columns(each, test_share)) for each in candidates]
    root.mkdir(parents=True, exist_ok=True)
    write_atomically(root / INSTANCES_FILE, format_table(rows).encode())
    for each in candidates:
        if each.instance.id in texts:
            write_change(root, each.instance, texts[each.instance.id])


def _columns(each: MinedCandidate, test_share: float | None) -> dict[str, str]:
    """Return the columns beyond the published ones."""
    date, name = each.record.date, each.record.repository
    return {
        "origin": "" if each.clone is None else str(each.clone.resolve()),
        "licence": each.record.licence or "",
        "date": "" if date is None else date.isoformat(),
        **({} if test_share is None else {"split": split_of(name, test_share).value}),
    }
