"""Rebuild published instances from a clone and compare them key by key.

``python tests/support/swe_refactor/rebuild.py FILE CLONE`` prints how many instances have an equal value for
each published key, and each difference. The places of the refactorings and their purity are those of the
instances themselves; with ``--detect VERSION`` that release of RefactoringMiner detects them anew. The jars
must be installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio

from codetaste.core.paths import cache_dir
from codetaste.java.jdt.service import open_jdt
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.model import CodeRange, Purity, Refactoring
from codetaste.refactorings.service import RefactoringService, refactoring_service
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.enrich.enrich import EnrichedRefactoring, enrich_commit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.java.jdt.service import JdtService
    from codetaste.source.repository import Repository

VERIFICATION = ("compileJDK", "compileResultBefore", "compileResultCurrent", "coverageInfo", "testResult")
"""Keys that need builds."""
WORDS = {
    "Extract": (
        "source method declaration before extraction",
        "source method declaration after extraction",
        "extracted method declaration",
    ),
    "Inline": (
        "target method declaration before inline",
        "target method declaration after inline",
        "inlined method declaration",
    ),
    "Move": ("original method declaration", "moved method declaration"),
}


def detection(instance: RefactoringInstance) -> Refactoring:
    """Return the detection of which an instance was made, with the ranges that count."""
    kind = next(word for word in ("Extract", "Inline", "Move") if word in instance.type)
    ranges = [
        CodeRange(place.file_path, place.start_line, place.end_line, 0, 0, "METHOD_DECLARATION", words, None)
        for place, words in zip(instance.diff_locations, WORDS[kind], strict=True)
    ]
    before, after, *other = ranges
    left = [before, *(other if kind == "Inline" else [])]
    right = [after, *(other if kind == "Extract" else [])]
    purity = instance.purity_check_result_list[0]
    return Refactoring(
        type=instance.type,
        description=instance.description.replace("\t", " ", 1),
        left=tuple(left),
        right=tuple(right),
        purity=Purity(purity.is_pure, purity.description, purity.purity_comment, purity.mapping_state),
    )


Detect: TypeAlias = Callable[[str, Sequence[RefactoringInstance]], Awaitable[list[Refactoring]]]
"""Gives the detection of each instance of one commit."""


async def recorded(_: str, group: Sequence[RefactoringInstance]) -> list[Refactoring]:
    return [detection(each) for each in group]


def detected(miner: RefactoringService, git_dir: Path) -> Detect:
    """Return a function that detects anew; what is not found has no places."""

    async def detect(commit: str, group: Sequence[RefactoringInstance]) -> list[Refactoring]:
        found = await miner.detect_commit(git_dir, commit)
        by_description = {each.description.replace("\t", " "): each for each in found.refactorings}
        return [
            by_description.get(
                each.description.replace("\t", " "), Refactoring(each.type, "not detected", (), ())
            )
            for each in group
        ]

    return detect


async def rebuild(
    jdt: JdtService, repository: Repository, instances: Sequence[RefactoringInstance], detect: Detect
) -> list[EnrichedRefactoring]:
    """Return each instance rebuilt, in their order."""
    found: dict[str, EnrichedRefactoring] = {}
    for commit in dict.fromkeys(each.commit_id for each in instances):
        group = [each for each in instances if each.commit_id == commit]
        rebuilt = await enrich_commit(jdt, repository, commit, await detect(commit, group))
        found |= {each.unique_id: one for each, one in zip(group, rebuilt, strict=True)}
    return [found[each.unique_id] for each in instances]


def differences(published: RefactoringInstance, rebuilt: EnrichedRefactoring) -> dict[str, tuple[Any, Any]]:
    """Return each key whose value is another one: that of the published instance, and ours."""
    old = {key: value for key, value in published.document.items() if key not in VERIFICATION}
    new = {} if rebuilt.instance is None else dict(rebuilt.instance.document)
    new.pop("codetaste", None)
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return {key: (old.get(key), new.get(key)) for key in keys}


def report(instances: Sequence[RefactoringInstance], rebuilt: Sequence[EnrichedRefactoring]) -> Iterator[str]:
    """Yield the lines of the table, and what is different in which instance."""
    faults = [differences(*pair) for pair in zip(instances, rebuilt, strict=True)]
    keys = dict.fromkeys(key for each in instances for key in each.document if key not in VERIFICATION)
    yield "| key | equal |"
    yield "| --- | --- |"
    yield from (f"| {key} | {sum(key not in each for each in faults)} of {len(faults)} |" for key in keys)
    for index, (instance, one, fault) in enumerate(zip(instances, rebuilt, faults, strict=True)):
        yield f"{index} {instance.type}: {one.outcome} {one.message}"
        if one.instance and (context := one.instance.context) and context.counts:
            yield (
                f"    {len(context.callers)} callers, {len(context.callees)} callees, "
                f"{context.counts.resolved_calls} of {context.counts.calls} calls resolved"
            )
        for key, (old, new) in fault.items():
            yield f"    {key}:\n      published {old!r}\n      rebuilt   {new!r}"


async def main(file: Path, clone: Path, version: Literal["3.1.4", "3.0.10"] | None) -> None:
    instances, cache = read_instances(file), cache_dir(sys.exit)
    repository = await open_repository(clone)
    async with AsyncExitStack() as stack:
        detect = recorded
        if version:
            config = RefactoringMinerConfig(version=version)
            miner = await stack.enter_async_context(refactoring_service(config, cache))
            detect = detected(miner, repository.git_dir)
        jdt = await stack.enter_async_context(open_jdt(cache))
        rebuilt = await rebuild(jdt, repository, instances, detect)
    sys.stdout.writelines(f"{line}\n" for line in report(instances, rebuilt))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--detect", choices=("3.1.4", "3.0.10"))
    arguments = parser.parse_args()
    anyio.run(main, arguments.file, arguments.clone, arguments.detect)
