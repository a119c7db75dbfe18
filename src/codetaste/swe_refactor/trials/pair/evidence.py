"""``Evidence``: what tools say of an answer, for the reviewer (Appendix G).

Nothing of it depends on the developers' commit but whether an edited test file is part of it: the check sees
the instance without the code after and without the class to which the developers moved a method.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.text import one_line, plural
from codetaste.errors import JavaError
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.swe_refactor.answers.edit.tree import read_files
from codetaste.swe_refactor.answers.java.syntax import parse_java
from codetaste.swe_refactor.answers.place import OTHER, TARGET_BEFORE, find_method, is_inlining
from codetaste.swe_refactor.report.failures.compiler_errors import read_compiler_errors
from codetaste.swe_refactor.score.check import CheckOutcome, RefactoringCheck, check_refactoring
from codetaste.swe_refactor.score.compile_and_test import compile_and_test
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from codetaste.swe_refactor.trials.pair.style import find_new_violations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from codetaste.java.checkstyle.service import CheckstyleService, StyleViolation
    from codetaste.orchestration.job import JobContext
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.trials.context import TrialContext
    from codetaste.swe_refactor.trials.conversation import AppliedAnswer

_STATEMENT_ENDS = re.compile(r"([;{}])")
_MAX_LINES = 20
_LOG_CHARS = 3000


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """What one tool says.

    Attributes:
        tool: its name for models.
        good: whether the answer passes; None if that is not known, or is for the reviewer to judge.
        text: what it says.
    """

    tool: str
    good: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What all tools say of one answer."""

    findings: tuple[ToolFinding, ...]

    @property
    def is_good(self) -> bool:
        """Whether no tool rejects the answer."""
        return all(each.good is not False for each in self.findings)

    @property
    def bad(self) -> tuple[ToolFinding, ...]:
        """What rejects it."""
        return tuple(each for each in self.findings if each.good is False)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"findings": [asdict(each) for each in self.findings]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        return cls(tuple(ToolFinding(**each) for each in data["findings"]))


async def gather_evidence(
    instance: RefactoringInstance, answer: AppliedAnswer, context: TrialContext, job: JobContext
) -> Evidence:
    """Return what the tools say of an answer; of one that cannot be used only why not.

    Raises:
        BaseFails: the files before cannot be built.
        SourceError: they cannot be read.
        SandboxError: no sandbox can be opened, or the engine failed.
        StorageFull: no space left.
    """
    if answer.problem is not None:
        return Evidence((ToolFinding("format", good=False, text=answer.problem.sentence),))
    base = await to_thread.run_sync(read_files, context.source(instance).tree, answer.files)
    shown = await to_thread.run_sync(without_golden, instance)
    check = await check_refactoring(shown, base, answer.files, context.miner)
    pair = context.pair
    assert pair is not None  # noqa: S101 - opened for this strategy
    style = await _style(base, answer.files, pair.checkstyle)
    build = await context.bases.open(instance)
    with job.waiting(Wait(WaitReason.CPU)):
        await pair.builds.acquire()
    try:
        tested = await compile_and_test(build, instance, base, answer.files)
    finally:
        pair.builds.release()
    return Evidence((_tests(tested), _refactoring(check, instance), style))


def without_golden(instance: RefactoringInstance) -> RefactoringInstance:
    """Return the instance without what only the developers' commit says. Blocking.

    Code and places after are replaced by those before, that of an inlining by the caller with the inlined
    code in it. The description has no class, so that a check takes any class for a move.
    """
    before = instance.source_code_before_refactoring
    if is_inlining(instance):
        unit = parse_java(instance.source_code_before_for_whole.encode("utf-8", "replace"))
        place = find_method(unit, instance.diff_locations[TARGET_BEFORE]) if unit else None
        caller = unit.text(place.method.start, place.method.end) if unit and place else ""
        rest = _without_calls(caller, instance.method_name).rpartition("}")[0]
        before = f"{rest}{before.partition('{')[2].rpartition('}')[0]}}}"
    places = [each.model_dump(by_alias=True) for each in instance.diff_locations]
    before_commit = {TARGET_BEFORE, OTHER} if is_inlining(instance) else {TARGET_BEFORE}
    return instance.updated(
        {
            "description": instance.type,
            "diffLocations": [
                each if number in before_commit else places[TARGET_BEFORE]
                for number, each in enumerate(places)
            ],
            "sourceCodeAfterRefactoring": before,
            "sourceCodeAfterForWhole": "",
            "filePathAfter": instance.file_path_before,
            "diffSourceCodeSet": [],
            "diffSourceCode": "",
        }
    )


def _without_calls(code: str, name: str) -> str:
    """Return a method without the statements that call another one: they need not stay."""
    head, *pieces = _STATEMENT_ENDS.split(code)
    call = re.compile(rf"\b{re.escape(name)}\s*\(")
    return "".join([head, *(" " if call.search(piece) else piece for piece in pieces)])


def _tests(tested: TestedAnswer) -> ToolFinding:
    name = "build"
    if tested.outcome is TestOutcome.BASE_FAILS:
        return ToolFinding(name, good=None, text="The project cannot be built here.")
    if tested.is_passed:
        return ToolFinding(name, good=True, text=f"It compiles, and {plural(tested.passed, 'test')} pass.")
    lines = [f"{tested.outcome.value.replace('_', ' ')}: {tested.detail}"]
    errors = read_compiler_errors(tested.log)
    lines += _listed([f"{each.path.rpartition('/')[2]}:{each.line}: {each.message}" for each in errors])
    lines += _listed([f"fails now, and did not before: {each}" for each in tested.new_failures])
    if not errors and not tested.new_failures and tested.log:
        lines.append(tested.log[-_LOG_CHARS:])
    return ToolFinding(name, good=False, text="\n".join(lines))


def _refactoring(check: RefactoringCheck, instance: RefactoringInstance) -> ToolFinding:
    name, wanted = "RefactoringMiner", f"{instance.type} of {instance.method_name_before}"
    if check.outcome is CheckOutcome.TOOL_FAILED:
        return ToolFinding(name, good=None, text="It gave no answer.")
    if check.outcome is CheckOutcome.PURITY_UNKNOWN:
        return ToolFinding(name, good=None, text=f"It finds {wanted}, and cannot say whether it is pure.")
    if check.is_verified:
        note = " It does not judge whether the class is the best one." if "Move" in instance.type else ""
        return ToolFinding(name, good=True, text=f"It finds {wanted}, and no other change.{note}")
    reason = {
        CheckOutcome.NONE_FOUND: "It finds no refactoring",
        CheckOutcome.OTHER_TYPE: "It finds another type of refactoring",
        CheckOutcome.OTHER_METHOD: "It finds the refactoring at another method",
        CheckOutcome.IMPURE: "The refactoring changes more of the code than it needs",
    }.get(check.outcome, "The answer changes other code, too")
    found = list(dict.fromkeys(filter(None, (check.detail, *check.extra))))
    return ToolFinding(
        name, good=False, text="\n".join([f"{reason}. Wanted is {wanted}. It says:", *_listed(found)])
    )


async def _style(
    base: Mapping[str, bytes], edited: Mapping[str, bytes], checkstyle: CheckstyleService
) -> ToolFinding:
    name = "Checkstyle"
    before, after = (
        {path: data.decode("utf-8", "replace") for path, data in side.items() if path.endswith(".java")}
        for side in (base, edited)
    )
    try:
        found = await find_new_violations(before, after, checkstyle)
    except JavaError:
        return ToolFinding(name, good=None, text="It gave no answer.")
    if not found:
        return ToolFinding(name, good=True, text="The answer adds no violation.")
    lines = _listed([_describe(each) for each in found])
    return ToolFinding(name, good=None, text="\n".join(["The answer adds:", *lines]))


def _describe(violation: StyleViolation) -> str:
    file = violation.path.rpartition("/")[2]
    return f"{file}:{violation.line}: {violation.message} ({violation.rule})"


def _listed(lines: Sequence[str]) -> list[str]:
    shown = [one_line(each, 400) for each in lines[:_MAX_LINES]]
    return [*shown, f"(and {len(lines) - _MAX_LINES} more)"] if len(lines) > _MAX_LINES else shown
