"""Compare the service with published output of RefactoringMiner and PurityChecker, commit by commit.

``python tests/support/refactorings/sample.py SAMPLE VERSION commits|contents CLONE…`` prints a line for
each commit of SAMPLE (JSON lines with ``id`` and ``refactorings``) that one of the clones has, and the
totals; with "contents" the service gets the changed files instead of the clone. A refactoring is the same if
its type, its description and all its places are; the verdicts are compared where it is the same.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from codetaste.core.paths import cache_dir
from codetaste.errors import JavaError
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.model import CodeRange, Refactoring
from codetaste.refactorings.service import RefactoringService, refactoring_service, repository_folder
from codetaste.source.git import run_git

PLACE_KEYS = (
    "filePath",
    "startLine",
    "endLine",
    "startColumn",
    "endColumn",
    "codeElementType",
    "description",
)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


@dataclass(frozen=True)
class Comparison:
    """How one commit compares: refactorings by who has them, and the verdicts that differ."""

    both: list[str]
    published_only: list[str]
    ours_only: list[str]
    verdicts: int
    other_verdicts: list[str]


def published_identity(each: dict[str, Any]) -> tuple[Any, ...]:
    def places(side: str) -> tuple[Any, ...]:
        return tuple(sorted(tuple(place[key] for key in PLACE_KEYS) for place in each[side]))

    return each["type"], each["description"], places("leftSideLocations"), places("rightSideLocations")


def own_identity(each: Refactoring) -> tuple[Any, ...]:
    def place(code: CodeRange) -> tuple[Any, ...]:
        lines = (code.start_line, code.end_line, code.start_column, code.end_column)
        return code.path, *lines, code.element_kind, code.description

    left, right = (tuple(sorted(map(place, side))) for side in (each.left, each.right))
    return each.type, each.description, left, right


def compare(published: Sequence[dict[str, Any]], found: Sequence[Refactoring]) -> Comparison:
    theirs, ours = Counter(map(published_identity, published)), Counter(map(own_identity, found))
    verdicts = {own_identity(each): each.purity and each.purity.pure for each in found}
    other, judged = [], 0
    for each in published:
        identity = published_identity(each)
        if identity in verdicts:
            verdict = each.get("purity") and each["purity"]["isPure"]
            judged += verdict is not None
            if verdict != verdicts[identity]:
                other.append(f"{each['type']}: published {verdict}, here {verdicts[identity]}")
    return Comparison(
        [f"{key[0]}: {key[1]}" for key in (theirs & ours).elements()],
        [f"{key[0]}: {key[1]}" for key in (theirs - ours).elements()],
        [f"{key[0]}: {key[1]}" for key in (ours - theirs).elements()],
        judged,
        other,
    )


async def has_commit(git_dir: Path, commit: str) -> bool:
    return (await run_git("cat-file", "-e", f"{commit}^{{commit}}", git_dir=git_dir)).ok


async def changed_files(git_dir: Path, commit: str) -> list[dict[str, str]]:
    """Return the files that ``commit`` changes before and after it, by path."""
    names = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{commit}^", commit)
    paths = [
        os.fsdecode(path) for path in (await run_git(*names, git_dir=git_dir)).output.split(b"\0") if path
    ]
    sides: list[dict[str, str]] = []
    for side in (f"{commit}^", commit):
        files = {path: await run_git("cat-file", "blob", f"{side}:{path}", git_dir=git_dir) for path in paths}
        sides.append({path: file.output.decode(errors="replace") for path, file in files.items() if file.ok})
    return sides


async def compare_commit(
    record: dict[str, Any], mode: str, clones: Sequence[Path], service: RefactoringService
) -> Comparison | None:
    for clone in clones:
        if await has_commit(clone, record["id"]):
            try:
                if mode == "commits":
                    found = await service.detect_commit(clone, record["id"])
                else:
                    found = await service.detect_contents(*await changed_files(clone, record["id"]))
            except JavaError as error:
                say(f"{record['id'][:8]} {error.outcome}: {error}")
                return None
            return compare(record["refactorings"], found.refactorings)
    say(f"{record['id'][:8]} in no clone")
    return None


async def main(sample: Path, version: str, mode: str, *clones: Path) -> None:
    folders = [await repository_folder(clone) for clone in clones]
    records = [json.loads(line) for line in (await anyio.Path(sample).read_text("utf-8")).splitlines()]
    total: Counter[str] = Counter()
    config = RefactoringMinerConfig.model_validate({"version": version})
    async with refactoring_service(config, cache_dir(say)) as service:
        for record in records:
            found = await compare_commit(record, mode, folders, service)
            if found is None:
                continue
            counts = {
                "commits": 1,
                "both": len(found.both),
                "published_only": len(found.published_only),
                "ours_only": len(found.ours_only),
                "verdicts": found.verdicts,
                "other_verdicts": len(found.other_verdicts),
            }
            total.update(counts)
            say(record["id"][:8], *(f"{name}={count}" for name, count in counts.items() if name != "commits"))
            for mark, texts in (
                ("-", found.published_only),
                ("+", found.ours_only),
                ("!", found.other_verdicts),
            ):
                for text in texts:
                    say(f"  {mark} {text[:300]}")
    say(dict(total))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], sys.argv[3], *map(Path, sys.argv[4:]))
