"""Read the reports that a test run has written in its sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.tar import DamagedTar, TarReader, TarTooLarge
from codetaste.core.text import plural, printable
from codetaste.evaluation.test_runs.reports.compare import compare_with_counts
from codetaste.evaluation.test_runs.reports.find import MAX_REPORT_FILES, MAX_TOTAL_BYTES, ReportCollector
from codetaste.evaluation.test_runs.reports.limits import MAX_REPORT_BYTES
from codetaste.sandbox.base import CommandLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.test_runs.cases import CaseStatus
    from codetaste.sandbox.base import Sandbox

_WITHIN_S = 300.0
_MAX_NOTES, _MAX_NOTE_CHARS = 20, 300
# Only what was written since the tests began; which of these files are reports is decided on the host.
_FIND = """
find /testbed /tmp /output -xdev -type f -newermt "@$1" -size "-$2c" \
    ! -path '*/node_modules/*' ! -path '*/.git/*' \\
    '(' -name '*.xml' -o -name '*.json' -o -name '*.jsonl' -o -name '*.tap' -o -name '*.txt' ')' -print0 \\
    2>/dev/null | head -z -n "$3" | tar --null --no-recursion -cf - -T - 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class CollectedReports:
    """What the reports say.

    Attributes:
        cases: the tests of all reports, by name.
        contradictions: what in them contradicts the counts of ``run_tests``, by the name of the count.
        notes: what contradicts itself in a report, or could not be read, one line each.
    """

    cases: Mapping[str, CaseStatus] = field(default_factory=dict)
    contradictions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


async def collect_reports(sandbox: Sandbox, since: float, counts: TestCounts | None) -> CollectedReports:
    """Read the reports that were written since ``since``, seconds of the epoch; content is untrusted.

    Raises:
        SandboxError: the sandbox is gone.
    """
    collector = ReportCollector()
    reader, damaged = TarReader(collector, 2 * MAX_TOTAL_BYTES), False

    async def take(piece: bytes) -> None:
        nonlocal damaged
        if not damaged:
            try:
                await to_thread.run_sync(reader.feed, piece)
            except (DamagedTar, TarTooLarge):
                damaged = True

    arguments = [str(int(since)), str(MAX_REPORT_BYTES), str(MAX_REPORT_FILES)]
    command = ["/bin/bash", "-c", _FIND, "codetaste", *arguments]
    await sandbox.run(command, limits=CommandLimits(_WITHIN_S), sink=take, workdir="/")
    report = await to_thread.run_sync(lambda: collector.report)
    faults = [f"{path}: {fault}" for path, fault in collector.faults.items()]
    if report is None:
        return CollectedReports(notes=_shorten(faults))
    found = {} if counts is None else compare_with_counts(report, counts)
    return CollectedReports(report.statuses, found, _shorten([*faults, *report.notes]))


def _shorten(notes: list[str]) -> tuple[str, ...]:
    shown = [printable(note, _MAX_NOTE_CHARS) for note in notes[:_MAX_NOTES]]
    more = len(notes) - len(shown)
    return (*shown, f"… and {plural(more, 'further note')}") if more else tuple(shown)
