"""What a record lacks, read from its repository."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.mining.clones.git.commit_object import parse_commit
from codetaste.mining.clones.git.licence import LicenceReader
from codetaste.source.git import run_git

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.prefilter.diff import CommitDiff


async def complete_record(git_dir: Path, diff: CommitDiff) -> CommitRecord:
    """Return the record of ``diff`` with base, message, date, licence and sizes; what it has is not changed.

    The commit is read only if the record has no date, so those of ``read_commits`` cost nothing.

    Raises:
        ToolMissing: git is not installed.
    """
    record = diff.record
    if record.date is None:
        found = await run_git("cat-file", "commit", diff.golden, git_dir=git_dir)
        commit = parse_commit(found.output)
        record = replace(record, message=record.message or commit.message, date=record.date or commit.date)
        tree = await run_git("cat-file", "tree", diff.golden, git_dir=git_dir)
        reader = LicenceReader(git_dir)
        licence = await to_thread.run_sync(reader.licence, tree.output, len(diff.golden))
        record = replace(record, licence=record.licence or licence)
    additions = sum(file.additions for file in diff.files)
    deletions = sum(file.deletions for file in diff.files)
    return replace(
        record,
        base=diff.base,
        files=diff.changed_files if record.files is None else record.files,
        additions=additions if record.additions is None else record.additions,
        deletions=deletions if record.deletions is None else record.deletions,
    )
