"""Stage 2 counts each commit at its filters, and leaves duplicates out before it looks at dates."""

from __future__ import annotations

from datetime import UTC, datetime

from codetaste.mining.commit import CommitRecord
from codetaste.mining.prefilter.diff import ChangeStatus, CommitDiff, FileChange, make_commit_diff
from codetaste.mining.prefilter.stage import run_stage_2
from codetaste.mining.prefilter.unreachable import Unreachable, UnreachableReason

OLD, CUT_OFF, NEW = (datetime(2025, month, 1, tzinfo=UTC) for month in (1, 3, 5))


def made(number: int, date: datetime, change: int) -> CommitDiff:
    record = CommitRecord(f"o/r{number}", f"{number:040x}", date=date)
    diff = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,30 +1 @@\n{'-old' * 30}\n+new{change}\n"
    files = [FileChange("a.py", None, ChangeStatus.MODIFIED, 1, 30)]
    return make_commit_diff(record, "f" * 40, record.golden, files, diff.encode())


def test_old_change_that_is_made_again_does_not_pass_as_a_later_one() -> None:
    gone = Unreachable(CommitRecord("o/gone", "e" * 40), UnreachableReason.NO_COMMIT, "deleted")
    diffs = [made(1, NEW, 1), gone, made(2, OLD, 1), made(3, OLD, 2), made(4, NEW, 3)]
    found, rows = run_stage_2(diffs, later_than=CUT_OFF)
    assert [each.record.repository for each in found.selected] == ["o/r4"]
    counts = {row.filter: (row.entered, row.removed) for row in rows}
    assert counts == {
        "reachable": (5, 1),
        "duplicate": (4, 1),
        "date": (3, 2),
        "code_edits": (1, 0),
        "changed_lines": (1, 0),
        "changed_files": (1, 0),
        "gzip_ratio": (1, 0),
    }
    found, rows = run_stage_2(diffs)
    assert {each.record.repository for each in found.selected} == {"o/r2", "o/r3", "o/r4"}
    assert "date" not in {row.filter for row in rows}
