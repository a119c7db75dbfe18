"""Which refactorings a human and an agent did to the same code, by RefactoringMiner, and which agree.

Beside the scores of a prediction, ``refactorings.json`` has the outcome and the counts, and
``refactorings.jsonl`` a row for each refactoring.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import REFACTORING_ROWS_FILE, REFACTORINGS_FILE
from codetaste.core.files import read_regular_file, write_atomically
from codetaste.core.text import one_line
from codetaste.errors import JavaError, PatchDoesNotApply, PatchError
from codetaste.refactorings.agreement import Author, ComparedRefactoring, compare_refactorings
from codetaste.refactorings.languages import language_of
from codetaste.source.patch.apply import applied_patch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from codetaste.refactorings.service import RefactoringService
    from codetaste.source.tree.overlay import OverlayTree

_FORMAT = 1
_MAX_FILE_BYTES = 2 * 1024**2
"""Larger files are generated; matching their statements takes hours."""

COMPARED, NO_FILES, DOES_NOT_APPLY = "compared", "no_files", "does_not_apply"
"""Outcomes; others are those of a ``JavaError``."""


@dataclass(frozen=True, slots=True)
class RefactoringCounts:
    """How many refactorings human and agent did.

    Attributes:
        human: of the human.
        agent: of the agent.
        agreed: of both, equal in type and element.
        same_result: of these, with the same new element.
        agent_pure: of the agent's, that PurityChecker found pure.
        agent_judged: of the agent's, that PurityChecker judged.
    """

    human: int
    agent: int
    agreed: int
    same_result: int
    agent_pure: int
    agent_judged: int

    @property
    def recall(self) -> float | None:
        """The share of the human's that the agent did, too; None if there are none."""
        return self.agreed / self.human if self.human else None

    @property
    def precision(self) -> float | None:
        """The share of the agent's that the human did, too; None if there are none."""
        return self.agreed / self.agent if self.agent else None

    @property
    def purity(self) -> float | None:
        """The share of the agent's judged ones that are pure; None if none was judged."""
        return self.agent_pure / self.agent_judged if self.agent_judged else None


@dataclass(frozen=True, slots=True)
class RefactoringComparison:
    """The comparison of one prediction.

    Attributes:
        outcome: COMPARED; NO_FILES if neither change has files in a language of RefactoringMiner;
            DOES_NOT_APPLY; "timeout", "memory", "crash" or "failed" if RefactoringMiner gave no answer.
        reason: why there is no comparison, "" if there is.
        version: the release of RefactoringMiner.
        rows: all refactorings.
    """

    outcome: str
    reason: str
    version: str
    rows: tuple[ComparedRefactoring, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Whether RefactoringMiner gave an answer, or was not needed for one."""
        return self.outcome in {COMPARED, NO_FILES, DOES_NOT_APPLY}

    @property
    def counts(self) -> RefactoringCounts | None:
        """The counts of the rows; None without a comparison."""
        if self.outcome != COMPARED:
            return None
        human, agent = ([each for each in self.rows if each.by in who] for who in _SIDES)
        judged = [each.agent_pure for each in agent if each.agent_pure is not None]
        return RefactoringCounts(
            human=len(human),
            agent=len(agent),
            agreed=sum(each.by is Author.BOTH for each in self.rows),
            same_result=sum(each.same_result for each in self.rows),
            agent_pure=sum(judged),
            agent_judged=len(judged),
        )

    def describe(self) -> str:
        """Return the comparison in a few words."""
        counts = self.counts
        if counts is None:
            return f"{self.outcome.replace('_', ' ')}{f': {self.reason}' if self.reason else ''}"
        return f"{counts.agreed} of the human's {counts.human} refactorings, {counts.agent} in all"


_SIDES = ((Author.HUMAN, Author.BOTH), (Author.AGENT, Author.BOTH))


async def compare_patches(
    service: RefactoringService, base: Path, human: bytes, agent: bytes, scratch: Path
) -> RefactoringComparison:
    """Compare the refactorings of two patches to R.

    Args:
        service: detects them.
        base: R, a folder.
        human: the golden patch.
        agent: the prediction.
        scratch: an existing folder for patched files, which are removed.

    Raises:
        SourceError: R cannot be read, or the golden patch does not apply to it.
        StorageFull: no space left.
    """
    version = service.version
    golden = await _changed_texts(base, human, scratch, version)
    try:
        predicted = await _changed_texts(base, agent, scratch, version)
    except (PatchError, PatchDoesNotApply) as error:
        return RefactoringComparison(DOES_NOT_APPLY, one_line(error), version)
    if not any((*golden, *predicted)):
        return RefactoringComparison(NO_FILES, "no changed file in a language that it reads", version)
    try:
        first, second = [await service.detect_contents(*each) for each in (golden, predicted)]
    except JavaError as error:
        return RefactoringComparison(error.outcome, one_line(error), version)
    rows = compare_refactorings(first.refactorings, second.refactorings)
    return RefactoringComparison(COMPARED, "", version, rows)


async def _changed_texts(
    base: Path, patch: bytes, scratch: Path, version: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files that ``patch`` changes, before and after, by path."""
    async with applied_patch(base, patch, scratch) as applied:
        return await to_thread.run_sync(_texts_of, applied.tree, version)


def _texts_of(tree: OverlayTree, version: str) -> tuple[dict[str, str], dict[str, str]]:
    before = _read_texts(tree.base, tree.changed | tree.deleted, version)
    return before, _read_texts(tree.overlay, tree.changed, version)


def _read_texts(folder: Path, paths: Iterable[str], version: str) -> dict[str, str]:
    """Read files in languages of RefactoringMiner; links and large files are left out."""
    texts = {}
    for path in sorted(paths):
        file = folder / path
        if not language_of(path, version) or file.is_symlink() or not file.is_file():
            continue
        if file.stat().st_size <= _MAX_FILE_BYTES:
            texts[path] = read_regular_file(file).decode("utf-8", "replace")
    return texts


def refactorings_to_json(comparison: RefactoringComparison) -> dict[str, Any]:
    """Return the content of ``refactorings.json`` as JSON data; the rows are a file of their own."""
    counts = comparison.counts
    return {
        "format": _FORMAT,
        "outcome": comparison.outcome,
        "reason": comparison.reason,
        "refactoring_miner": comparison.version,
        "counts": counts and asdict(counts),
    }


def refactoring_rows(comparison: RefactoringComparison) -> str:
    """Return the content of ``refactorings.jsonl``."""
    return "".join(json.dumps(asdict(row)) + "\n" for row in comparison.rows)


def refactoring_counts_from_json(data: Mapping[str, Any]) -> RefactoringCounts | None:
    """Return the counts in the content of ``refactorings.json``; None if it has none.

    Raises:
        ValueError: it is not of that format.
    """
    counts = data.get("counts")
    if data.get("format") != _FORMAT:
        raise ValueError(f"it has the format {data.get('format')!r}, not {_FORMAT}")
    if counts is None:
        return None
    names = RefactoringCounts.__slots__
    if not isinstance(counts, dict) or set(counts) != set(names):
        raise ValueError("its counts are not those of refactorings")
    if not all(isinstance(each, int) and each >= 0 for each in counts.values()):
        raise ValueError("a count is not a natural number")
    return RefactoringCounts(**counts)


def write_refactorings(folder: Path, summary: Mapping[str, Any], rows: str) -> None:
    """Write both files to the evaluation's ``folder``. Call it from a worker thread.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    write_atomically(folder / REFACTORING_ROWS_FILE, rows)
    write_atomically(folder / REFACTORINGS_FILE, json.dumps(summary, indent=2) + "\n")
