"""A corpus made of the commits of the oracle: its lines, and how many refactorings are left out, and why."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.swe_refactor.examples.corpus import select_examples
from codetaste.swe_refactor.examples.example import RefactoringExample
from codetaste.swe_refactor.examples.oracle import oracle_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codetaste.refactorings.service import RefactoringService
    from codetaste.swe_refactor.examples.corpus import LeftOutReason
    from codetaste.swe_refactor.examples.oracle import OracleCommit, OracleRecords
    from codetaste.swe_refactor.examples.overlap import InstanceOverlap


@dataclass(frozen=True, slots=True)
class CollectedCorpus:
    """A corpus to be written.

    Attributes:
        lines: JSON, a line for each example.
        types: how many examples there are of each type.
        left_out: how many refactorings of the commits are none, by reason.
        problems: commits without an answer, one line each.
    """

    lines: tuple[str, ...]
    types: Counter[str]
    left_out: Counter[LeftOutReason]
    problems: tuple[str, ...]


async def collect_corpus(
    commits: Sequence[OracleCommit],
    service: RefactoringService,
    overlap: InstanceOverlap,
    *,
    at_once: int,
    unconfirmed: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _lines: None,
) -> CollectedCorpus:
    """Ask for the refactorings of ``commits``, and select examples among them.

    The service stores its answers, so that a collection that was stopped continues where it was.

    Args:
        commits: of the oracle.
        service: finds refactorings.
        overlap: what examples must not have in common with instances.
        at_once: how many commits are read and asked for at the same time.
        unconfirmed: see ``oracle_records``.
        progress: gets the number of commits that are done, and of lines that they gave.
    """
    found: dict[str, OracleRecords] = {}
    problems: dict[str, str] = {}
    limiter = anyio.CapacityLimiter(at_once)

    async def collect(commit: OracleCommit) -> None:
        async with limiter:
            try:
                found[commit.commit] = await oracle_records(commit, service, unconfirmed=unconfirmed)
            except SourceError as error:
                problems[commit.commit] = str(error)
        progress(len(found) + len(problems), sum(len(each.records) for each in found.values()))

    progress(0, 0)
    async with anyio.create_task_group() as tasks:
        for each in commits:
            tasks.start_soon(collect, each)
    in_order = [found[each.commit] for each in commits if each.commit in found]
    return await to_thread.run_sync(_select, in_order, overlap, [problems[each] for each in sorted(problems)])


def _select(
    found: Sequence[OracleRecords], overlap: InstanceOverlap, problems: Sequence[str]
) -> CollectedCorpus:
    records: list[dict[str, Any]] = [record for each in found for record in each.records]
    examples = [RefactoringExample.model_validate(record) for record in records]
    corpus = select_examples(examples, overlap)
    used = {id(each) for each in corpus.examples}
    lines = [json.dumps(record) for record, each in zip(records, examples, strict=True) if id(each) in used]
    left_out = Counter(each.reason for each in corpus.left_out)
    for each in found:
        left_out += each.left_out
    types = Counter(each.type for each in corpus.examples)
    return CollectedCorpus(tuple(lines), types, left_out, tuple(problems))
