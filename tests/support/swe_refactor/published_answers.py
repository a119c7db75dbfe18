"""Score the developers' answers to published instances, and edits that refactor nothing.

usage: published_answers.py FILE CLONE FOLDER [--image NAME] [--socket PATH]

Each instance has an empty answer, its developers' answer, its files as they are, and in turn a comment more,
a variable with another name, or an empty method that is called. All are scored as a run does: compiled and
tested with the instance's JDK in the Java image, checked, CodeBLEU. FOLDER keeps dependencies, built trees
and scores: a second call does what is missing. RefactoringMiner must be installed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from codetaste.core.concurrency import gather
from codetaste.core.paths import cache_dir
from codetaste.environment.base_image.recipe import JAVA_IMAGE
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_service
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.provider import open_sandboxes
from codetaste.source.git import run_git
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.answers.developer import developer_answer
from codetaste.swe_refactor.answers.edit.tree import FolderTree
from codetaste.swe_refactor.answers.java.syntax import parse_java
from codetaste.swe_refactor.answers.place import TARGET_BEFORE, find_method
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.score.answer_score import AnswerScore
from codetaste.swe_refactor.score.base_build import BaseFails, build_base
from codetaste.swe_refactor.verify.settings import make_verify_context

if TYPE_CHECKING:
    from codetaste.refactorings.service import RefactoringService
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.score.base_build import BaseBuild
    from codetaste.swe_refactor.verify.settings import VerifyContext

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.swe_refactor.score_answer import score_answer, score_files

say = partial(print, flush=True)
DEVELOPERS, EMPTY, UNCHANGED = "developers", "empty", "unchanged"
EMPTY_METHOD = "codetasteEmpty"
VARIABLE = re.compile(rb"[A-Z]\w*(?:<[\w, ]*>)?(?:\[\])? ([a-z]\w*)(?= [=:]|,|\))")


def target(instance: RefactoringInstance, data: bytes) -> tuple[int, int, int]:
    """Return where the method begins, where its body begins, and where it ends."""
    unit = parse_java(data)
    place = find_method(unit, instance.diff_locations[TARGET_BEFORE]) if unit else None
    assert place is not None, instance.unique_id
    start, end = place.method.code_start, place.method.end
    return (
        start,
        data.index(b"{", data.index(b")", data.index(place.method.name.encode() + b"(", start))) + 1,
        end,
    )


def with_comment(instance: RefactoringInstance, data: bytes) -> bytes:
    """Return the file with a comment in the method."""
    _, body, _ = target(instance, data)
    return data[:body] + b" // as it is" + data[body:]


def with_other_name(instance: RefactoringInstance, data: bytes) -> bytes | None:
    """Return the file with another name of a variable of the method; None if it has none that is easy."""
    start, _, end = target(instance, data)
    method = data[start:end]
    for found in VARIABLE.finditer(method):
        name = found[1]
        if not re.search(rb"\.\s*%s\b" % name, method):
            return data[:start] + re.sub(rb"\b%s\b" % name, name + b"2", method) + data[end:]
    return None


def with_empty_method(instance: RefactoringInstance, data: bytes) -> bytes:
    """Return the file with a call of a new empty method in the method."""
    start, body, end = target(instance, data)
    static = "static " if b" static " in data[start:body] else ""
    method = f"\n\n    private {static}void {EMPTY_METHOD}() {{\n    }}"
    call = f"\n        {EMPTY_METHOD}();"
    return data[:body] + call.encode() + data[body:end] + method.encode() + data[end:]


EDITS = {
    "a comment more": with_comment,
    "another name of a variable": with_other_name,
    "an empty method more": with_empty_method,
}


async def parent_of(repository: Repository, commit: str) -> str:
    """Return the commit before another one."""
    done = await run_git("rev-parse", f"{commit}^", git_dir=repository.git_dir)
    assert done.ok, commit
    return done.output.decode().strip()


class Scores:
    """The scores of all answers to one instance, each kept in a file."""

    def __init__(
        self, options: argparse.Namespace, context: VerifyContext, service: RefactoringService
    ) -> None:
        self.folder: Path = options.folder
        self.context = context
        self.service = service

    async def of(
        self, instance: RefactoringInstance, repository: Repository, number: int
    ) -> dict[str, AnswerScore]:
        """Return the scores by kind of answer."""
        file = anyio.Path(self.folder / f"{instance.unique_id}.json")
        if await file.exists():
            data = json.loads(await file.read_text())
            return {kind: AnswerScore.from_json(each) for kind, each in data.items()}
        parent = await parent_of(repository, instance.commit_id)
        folder = self.folder / "trees" / instance.unique_id
        await repository.export(parent, folder)
        tree = FolderTree(folder)
        base: BaseBuild | BaseFails
        try:
            base = await build_base(self.context, repository, parent, instance, self.folder / "store")
        except BaseFails as failed:
            base = failed
        text = partial(score_answer, base=base, tree=tree, service=self.service)
        found = {
            DEVELOPERS: await text(developer_answer(instance), instance),
            EMPTY: await text("", instance),
        }
        path = instance.file_path_before
        before = tree.read(path)
        assert before is not None
        edits = {UNCHANGED: before}
        kinds = list(EDITS)
        for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
            edited = EDITS[kind](instance, before)
            if edited is not None:
                edits[kind] = edited
                break
        for kind, edited in edits.items():
            found[kind] = await score_files(
                {path: edited}, instance, base=base, tree=tree, service=self.service
            )
        await file.write_text(json.dumps({kind: score.to_json() for kind, score in found.items()}))
        return found


def state(score: AnswerScore) -> str:
    """Return what tests, check and CodeBLEU say."""
    tests = "–" if score.tests is None else f"`{score.tests.outcome}`"
    check = "–" if score.check is None else f"`{score.check.outcome}`"
    bleu = "–" if score.codebleu is None else f"{score.codebleu_score:.4g}"
    return f"{tests} | {check} | {bleu} | `{score.outcome}`"


def detail(score: AnswerScore) -> str:
    """Return why an answer is no success."""
    if score.problem is not None:
        return score.problem.sentence
    if score.tests is not None and not score.tests.is_passed:
        errors = [line for line in score.tests.log.splitlines() if "ERROR" in line and ".java" in line]
        return "; ".join([score.tests.detail, *errors[:1]])
    return score.check.detail if score.check is not None else ""


def print_tables(instances: list[RefactoringInstance], results: list[dict[str, AnswerScore]]) -> None:
    """Print the developers' answers one by one, and all others by kind."""
    say("| instance | JDK | tests | check | CodeBLEU | outcome |")
    say("| --- | --- | --- | --- | --- | --- |")
    rows = Counter[str]()
    for number, (instance, scores) in enumerate(zip(instances, results, strict=True)):
        own = scores.pop(DEVELOPERS)
        jdk = own.tests.jdk if own.tests else None
        say(f"| {number} {instance.type} `{instance.method_name}` | {jdk or '–'} | {state(own)} |")
        if not own.is_success:
            say(f"    {detail(own)}")
        for kind, score in scores.items():
            rows[f"| {kind} | {state(score)} |"] += 1
            if score.outcome not in {"unusable", "not_verified"}:
                say(f"    {kind}: {state(score)}: {detail(score)}")
    say("\n| edit | tests | check | CodeBLEU | outcome | number |")
    say("| --- | --- | --- | --- | --- | --- |")
    for row, count in sorted(rows.items()):
        say(f"{row} {count} |")


async def main(options: argparse.Namespace) -> None:
    repository = await open_repository(options.clone)
    instances = read_instances(options.file)
    config = SandboxConfig(engine="docker", socket=options.socket, image=options.image)
    cache = cache_dir(say)
    limiter = anyio.CapacityLimiter(options.jobs)
    async with (
        open_sandboxes(config, options.folder / "run", "by-hand", say) as sandboxes,
        refactoring_service(RefactoringMinerConfig(workers=1), cache) as service,
    ):
        context = await make_verify_context(
            sandboxes, config, image=options.image, folder=options.folder / "project", cache=cache
        )
        scores = Scores(options, context, service)

        async def one(number: int) -> dict[str, AnswerScore]:
            async with limiter:
                found = await scores.of(instances[number], repository, number)
            say(f"scored: {number}", file=sys.stderr)
            return found

        results = await gather([partial(one, number) for number in range(len(instances))])
    print_tables(instances, results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("clone", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--image", default=JAVA_IMAGE)
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="answers at a time (default 2)")
    anyio.run(main, parser.parse_args())
