"""``codetaste swe-refactor examples``: a corpus of examples from a clone of RefactoringMiner's repository."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from anyio import to_thread
from cyclopts import Parameter
from cyclopts.validators import Number

from codetaste.cli.options import AsJson, Flag
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import write_atomically
from codetaste.core.paths import cache_dir
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_service
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.examples.collect import collect_corpus
from codetaste.swe_refactor.examples.corpus import LeftOutReason
from codetaste.swe_refactor.examples.oracle import list_oracle
from codetaste.swe_refactor.examples.overlap import InstanceOverlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.swe_refactor.examples.collect import CollectedCorpus

_PROGRESS_INTERVAL_S = 2.0


@command
async def examples(
    clone: Path,
    /,
    *,
    to: Path,
    instances: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    unconfirmed: Flag = False,
    workers: Annotated[int | None, Parameter(validator=Number(gte=1, lte=1024))] = None,
    time_limit: Annotated[float, Parameter(validator=Number(gt=0))] = 300.0,
    json_: AsJson = False,
) -> int:
    """Write the pure refactorings of RefactoringMiner's oracle as examples for prompts, one a line.

    Ctrl-C stops it; the same command continues with the commits that are left.

    Args:
        clone: A checked-out clone of RefactoringMiner's repository.
        to: The file to create.
        instances: A file of instances; examples with a commit or a method of them are left out. May be
            repeated.
        unconfirmed: Keep refactorings, too, that RefactoringMiner finds and that no list of the oracle has.
        workers: How many JVMs there are at most; default one for each core.
        time_limit: Seconds for one commit.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the clone has no oracle, a file of instances cannot be read, no example is left, or the
            file exists already.
        ToolMissing: there is no JDK that is new enough, or the jars are not installed.
        StorageFull: no space left.
    """
    if await anyio.Path(to).exists():
        raise ConfigError(f"{to}: it exists already; name another file")
    known = [each for path in instances for each in await to_thread.run_sync(read_instances, path)]
    commits = await to_thread.run_sync(list_oracle, clone)
    cache = await to_thread.run_sync(cache_dir, notify)
    config = RefactoringMinerConfig(workers=workers, time_limit=time_limit)
    async with refactoring_service(config, cache) as service:
        corpus = await collect_corpus(
            commits,
            service,
            InstanceOverlap.of(known),
            at_once=workers or len(os.sched_getaffinity(0)),
            unconfirmed=unconfirmed,
            progress=CommitProgress(len(commits)),
        )
    for problem in corpus.problems:
        notify(f"no answer: {printable(problem)}")
    if not corpus.lines:
        raise ConfigError(f"{clone}: no example is left: {', '.join(_left_out(corpus)) or 'none is found'}")
    text = "".join(f"{line}\n" for line in corpus.lines)
    await to_thread.run_sync(write_atomically, to, text)
    if json_:
        print_result(json_document(_to_json(to, len(commits), corpus)))
    else:
        for line in _describe(to, len(commits), corpus):
            print_result(line)
    return 0


class CommitProgress:
    """Shows every few seconds how many commits are done: in one line of a terminal, else in a new line."""

    def __init__(self, commits: int) -> None:
        self._commits, self._shown_at = commits, 0.0

    def __call__(self, done: int, lines: int) -> None:
        """Report ``done`` commits, and the refactorings that they gave."""
        now, finished = time.monotonic(), done == self._commits
        if now - self._shown_at < _PROGRESS_INTERVAL_S and not finished:
            return
        self._shown_at = now
        line = f"{done} of {plural(self._commits, 'commit')}, {plural(lines, 'refactoring')} of the six types"
        if sys.stderr.isatty():
            with suppress(OSError):
                print(f"\r{line:<70}", end="\n" if finished else "", file=sys.stderr, flush=True)  # noqa: T201
        else:
            notify(line)


def _left_out(corpus: CollectedCorpus) -> Iterator[str]:
    return (f"{corpus.left_out[each]:,} {each}" for each in LeftOutReason if corpus.left_out[each])


def _describe(to: Path, commits: int, corpus: CollectedCorpus) -> Iterator[str]:
    yield f"{printable(str(to))}: {plural(len(corpus.lines), 'example')} of {plural(commits, 'commit')}"
    for name in REFACTORING_TYPES:
        yield f"{corpus.types[name]:>7,}  {name}"
    yield f"left out: {', '.join(_left_out(corpus)) or 'nothing'}"
    if corpus.problems:
        yield f"{plural(len(corpus.problems), 'commit')} without an answer"


def _to_json(to: Path, commits: int, corpus: CollectedCorpus) -> dict[str, Any]:
    return {
        "file": str(to),
        "commits": commits,
        "kept": len(corpus.lines),
        "types": {name: corpus.types[name] for name in REFACTORING_TYPES},
        "left_out": {each.value: corpus.left_out[each] for each in LeftOutReason},
        "problems": list(corpus.problems),
    }
