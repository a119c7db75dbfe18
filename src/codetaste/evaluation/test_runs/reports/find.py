"""Which files below the testbed, or among temporary files, are test reports: by their places and names.

A repository may have such files itself: the caller says which were there before the run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.core.tar import MemberKind
from codetaste.core.text import printable_name
from codetaste.evaluation.test_runs.cases import TestReport, merge_reports
from codetaste.evaluation.test_runs.reports.limits import MAX_REPORT_BYTES, InvalidReport, ReportProblem
from codetaste.evaluation.test_runs.reports.read import read_report

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from codetaste.core.tar import TarMember

MAX_REPORT_FILES = 20_000
"""Maven and gradle write one file for each class."""
MAX_TOTAL_BYTES = 512 * 1024**2
_MAX_PATH_CHARS = 4096
_PLACES = re.compile(
    r"""(?:^|/)(?:
        target/(?:surefire|failsafe)-reports/TEST-[^/]*\.xml            # Maven
      | build/test-results/(?:[^/]+/)*[^/]*\.xml                        # gradle
      | target/nextest/(?:[^/]+/)*[^/]*\.xml                            # cargo nextest
      | Testing/[^/]+/Test\.xml                                         # ctest -T Test
      | (?:test[-_])?(?:results?|reports?)/(?:[^/]+/)*[^/]*\.(?:xml|tap)
      | TEST-[^/]*\.xml
      | [^/]*(?:junit|nosetests|xunit)[^/]*\.xml
      | (?:py|unit)?test(?:s|ing)?[-_.]?(?:results?|reports?|output)[^/]*\.(?:xml|json|tap)
      | (?:jest|vitest|mocha|ctest|pytest|(?:go|cargo|node)[-_]?test)[^/]*\.(?:xml|jsonl?|tap|txt)
      | (?:results?|reports?|output)\.tap
    )$""",
    re.VERBOSE,
)
_NO_PLACES = re.compile(r"(?:^|/)(?:node_modules|\.git|vendor|site-packages|\.venv|venv)/")
_CONFIGS = re.compile(r"(?:^|/)[^/]*config[^/]*\.json$|(?:^|/)pytest\.ini$")


def is_report_place(path: str) -> bool:
    """Whether a file at ``path`` (POSIX, relative or absolute) is a test report, by its place and name."""
    return (
        len(path) <= _MAX_PATH_CHARS
        and _PLACES.search(path) is not None
        and _NO_PLACES.search(path) is None
        and _CONFIGS.search(path) is None
    )


def find_reports(names: Iterable[str], before: Collection[str] = ()) -> tuple[str, ...]:
    """Return the reports among the files ``names``, sorted; none that were there ``before`` the run.

    At most 20,000 are returned.
    """
    found = sorted(path for path in names if is_report_place(path) and path not in before)
    return tuple(found[:MAX_REPORT_FILES])


class ReportCollector:
    """Reads the reports in a tar stream, one after the other: the handler of a ``TarReader``.

    Parsing takes time: feed the stream in a thread.

    Args:
        before: paths in the archive that are no reports of this run.
    """

    def __init__(self, before: Collection[str] = ()) -> None:
        self.faults: dict[str, InvalidReport] = {}
        """Why a file was not read, by path."""
        self._before = before
        self._reports: list[TestReport] = []
        self._path = ""
        self._parts: list[bytes] = []
        self._left = MAX_TOTAL_BYTES

    @property
    def report(self) -> TestReport | None:
        """All tests of the reports read so far; None if there is no readable report."""
        return merge_reports(self._reports) if self._reports else None

    def member(self, member: TarMember) -> bool:
        """Receive a member; only the content of regular files at a report's place is wanted."""
        path = member.name.decode("utf-8", "surrogateescape")
        if member.kind is not MemberKind.FILE or not is_report_place(path) or path in self._before:
            return False
        self._path, self._parts = printable_name(member.name)[1:-1], []
        if len(self._reports) + len(self.faults) >= MAX_REPORT_FILES:
            return False
        if member.size > min(MAX_REPORT_BYTES, self._left):
            self._fail(f"{member.size:,} bytes; no more than {min(MAX_REPORT_BYTES, self._left):,} are read")
            return False
        self._left -= member.size
        return True

    def content(self, chunk: bytes) -> None:
        """Receive a piece of the file."""
        self._parts.append(chunk)

    def end(self) -> None:
        """Read the file."""
        try:
            self._reports.append(read_report(b"".join(self._parts)))
        except InvalidReport as fault:
            self.faults[self._path] = fault
        self._parts = []

    def _fail(self, message: str) -> None:
        self.faults[self._path] = InvalidReport(ReportProblem.TOO_LARGE, message)
