"""Rebuild published instances from a clone and compare them key by key.

``python tests/support/swe_refactor/rebuild.py FILE CLONE`` prints how many instances have an equal value for each
published key, and each difference. The places of the refactorings and their purity are those of the instances
themselves: here it is the enrichment that is compared. Eclipse JDT must be installed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.core.paths import cache_dir
from codetaste.java.jdt.service import open_jdt
from codetaste.refactorings.model import CodeRange, Purity, Refactoring
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.enrich.enrich import EnrichedRefactoring, enrich_commit
from codetaste.swe_refactor.format import read_instances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.java.jdt.service import JdtService
    from codetaste.swe_refactor.instance import RefactoringInstance

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


async def rebuild(
    jdt: JdtService, clone: Path, instances: Sequence[RefactoringInstance]
) -> list[EnrichedRefactoring]:
    """Return each instance rebuilt, in their order."""
    repository = await open_repository(clone)
    found: dict[str, EnrichedRefactoring] = {}
    for commit in dict.fromkeys(each.commit_id for each in instances):
        group = [each for each in instances if each.commit_id == commit]
        rebuilt = await enrich_commit(jdt, repository, commit, [detection(each) for each in group])
        found |= {each.unique_id: one for each, one in zip(group, rebuilt, strict=True)}
    return [found[each.unique_id] for each in instances]


def differences(published: RefactoringInstance, rebuilt: EnrichedRefactoring) -> dict[str, tuple[Any, Any]]:
    """Return each key whose value is another one: that of the published instance, and ours."""
    old = {key: value for key, value in published.document.items() if key not in VERIFICATION}
    new = {} if rebuilt.instance is None else dict(rebuilt.instance.document)
    new.pop("codetaste", None)
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return {key: (old.get(key), new.get(key)) for key in keys}


async def main(file: Path, clone: Path) -> None:
    instances = read_instances(file)
    async with open_jdt(cache_dir(sys.exit)) as jdt:
        rebuilt = await rebuild(jdt, clone, instances)
    faults = [differences(*pair) for pair in zip(instances, rebuilt, strict=True)]
    keys = list(dict.fromkeys(key for each in instances for key in each.document if key not in VERIFICATION))
    print("| key | equal |\n| --- | --- |")
    for key in keys:
        print(f"| {key} | {sum(key not in each for each in faults)} of {len(faults)} |")
    for index, (instance, one, fault) in enumerate(zip(instances, rebuilt, faults, strict=True)):
        context = one.instance.context if one.instance else None
        counts = context.counts if context else None
        if context and counts:
            print(
                f"{index} {instance.type}: {one.outcome}; {len(context.callers)} calls of the target, "
                f"{len(context.callees)} callees, {counts.resolved_calls} of {counts.calls} calls resolved"
            )
        else:
            print(f"{index} {instance.type}: {one.outcome}: {one.message}")
        for key, (old, new) in fault.items():
            print(f"    {key}:\n      published {old!r}\n      rebuilt   {new!r}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("clone", type=Path)
    arguments = parser.parse_args()
    anyio.run(main, arguments.file, arguments.clone)
