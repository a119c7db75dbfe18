"""Check mutants of the developers' answers to published instances, and print how many are accepted, by kind.

usage: mutate_answers.py FILE [--shown]

Only answers that are verified are mutated. A mutant is no mutant where it is by rights the refactoring:
another visibility of the new method, other imports. RefactoringMiner must be installed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from codetaste.core.concurrency import gather
from codetaste.core.paths import cache_dir
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_service
from codetaste.swe_refactor.answers.apply import EditedFiles, apply_answer
from codetaste.swe_refactor.answers.developer import developer_answer
from codetaste.swe_refactor.answers.java.syntax import all_types, parse_java
from codetaste.swe_refactor.answers.parse import ParsedAnswer, parse_answer, refactored_names
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.score.check import check_refactoring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.refactorings.service import RefactoringService
    from codetaste.swe_refactor.answers.java.syntax import SourceMember
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

    Mutant = tuple[str, RefactoringInstance, dict[str, bytes]]
    """Kind, the instance that is asked, and the edited files."""

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.swe_refactor.shop import Files

say = partial(print, flush=True)
OTHER_METHODS = 4
STATEMENT = re.compile(rb"(?<=[;{}])\s*[\w.]+\([^;{}]*\);|(?<=[;{}])\s*[\w.<>\[\] ]+ = [^;{}]*;")
SWAPS = (
    (b" == ", b" != "),
    (b" < ", b" <= "),
    (b" + ", b" - "),
    (b"true", b"false"),
    (b" != null", b" == null"),
)


def methods(data: bytes) -> Iterator[SourceMember]:
    """Yield the methods that have a body."""
    unit = parse_java(data)
    for owner in all_types(unit.types) if unit else ():
        for each in owner.members:
            if each.is_method and b"{" in data[each.code_start : each.end]:
                yield each


def edits(data: bytes, method: SourceMember, *, is_new: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the file with another body, or another head, of one method, each with its kind."""
    begin = data.index(b"{", data.index(b")", method.code_start)) + 1
    body = data[begin : method.end]

    def put(new: bytes) -> bytes:
        return data[:begin] + new + data[method.end :]

    yield "a statement added", put(b" System.gc();" + body)
    if found := STATEMENT.search(b"{" + body):
        yield "a statement dropped", put(body.replace(found[0], b"", 1))
    for old, new in SWAPS:
        if old in body:
            yield "an operator or literal changed", put(body.replace(old, new, 1))
            break
    for old, new in ((b"private ", b"public "), (b"public ", b"private "), (b"protected ", b"public ")):
        head = data[method.code_start : begin]
        if old in head and not is_new:
            yield "a modifier changed", data[: method.code_start] + head.replace(old, new, 1) + data[begin:]
            break


def mutants(instance: RefactoringInstance, before: bytes, after: bytes) -> Iterator[Mutant]:
    """Yield mutants of an answer."""
    path = instance.file_path_before
    yield "nothing edited", instance, {path: before}
    for kind in REFACTORING_TYPES:
        if kind != instance.type:
            yield "another type", instance.updated({"type": kind}), {path: after}
    for shift in (1, 2, 3):
        places = [dict(each) for each in instance.document["diffLocations"]]
        for place in places:
            place["startLine"] += 500 * shift
            place["endLine"] += 500 * shift
        yield "another method", instance.updated({"diffLocations": places}), {path: after}
    for kind, content in edited_methods(instance, before, after):
        yield kind, instance, {path: content}
    last = max(method.end for method in methods(after))
    for kind, text in (
        ("a field added", b"\n    int codetasteField;\n"),
        ("a method added", b"\n    void codetaste() { }\n"),
        ("a class added", b"\n    static class Codetaste { }\n"),
    ):
        yield kind, instance, {path: after[:last] + text + after[last:]}
    beside = path.rpartition("/")[0] + "/Codetaste.java"
    yield "a file added", instance, {path: after, beside: b"class Codetaste { }\n"}
    yield "a file added", instance, {path: after, "notes.txt": b"done\n"}


def edited_methods(instance: RefactoringInstance, before: bytes, after: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the file with a change of the refactored method, of the new ones, and of some others."""
    names, old = set(refactored_names(instance)), {each.signature for each in methods(before)}
    others = 0
    for method in methods(after):
        is_new = method.signature not in old
        if method.name in names:
            where = "in the method"
        elif is_new:
            where = "in the new method"
        elif others < OTHER_METHODS:
            where, others = "in another method", others + 1
        else:
            continue
        is_moved = method.name in names and instance.type.startswith("Move")
        for what, edited in edits(after, method, is_new=is_new or is_moved):
            yield f"{what} {where}", edited


async def answer(
    service: RefactoringService, instance: RefactoringInstance
) -> list[tuple[str, str, bool]] | None:
    """Return kind, outcome and published check of each mutant; None if the answer itself is not verified."""
    path, before = instance.file_path_before, instance.source_code_before_for_whole.encode()
    parsed = parse_answer(developer_answer(instance), instance)
    edited = (
        apply_answer(instance, parsed, Files({path: before})) if isinstance(parsed, ParsedAnswer) else None
    )
    if not isinstance(edited, EditedFiles) or set(edited.files) != {path}:
        return None
    if not (await check_refactoring(instance, {path: before}, edited.files, service)).is_verified:
        return None
    found = []
    for kind, other, files in mutants(instance, before, edited.files[path]):
        result = await check_refactoring(other, {path: before}, files, service)
        found.append((kind, str(result.outcome), result.published))
    return found


async def main(options: argparse.Namespace) -> None:
    async with refactoring_service(RefactoringMinerConfig(), cache_dir(print)) as service:
        instances = read_instances(options.file)
        results = await gather([partial(answer, service, each) for each in instances])
    for instance, found in zip(instances, results, strict=True):
        if found is None:
            say(f"not verified: {instance.type} {instance.method_name}")
        for kind, outcome, _ in found or ():
            if options.shown and outcome == "verified":
                say(f"accepted: {instance.type} {instance.method_name}: {kind}")
    print_table([each for found in results for each in found or ()])


def print_table(found: list[tuple[str, str, bool]]) -> None:
    """Print kinds by outcomes."""
    names = sorted({outcome for _, outcome, _ in found} | {"verified"})
    heads = ["mutant", "number", *(f"`{name}`" for name in names), "accepted by the published check"]
    say(f"| {' | '.join(heads)} |")
    say("| --- " * len(heads) + "|")
    kinds: dict[str, list[tuple[str, str, bool]]] = {}
    for each in found:
        kinds.setdefault(each[0], []).append(each)
    for kind, rows in [*sorted(kinds.items()), ("all", found)]:
        counts = Counter(outcome for _, outcome, _ in rows)
        published = sum(is_published for _, _, is_published in rows)
        cells = [kind, len(rows), *(counts[name] for name in names), published]
        say(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--shown", action="store_true", help="print each accepted mutant")
    anyio.run(main, parser.parse_args())
