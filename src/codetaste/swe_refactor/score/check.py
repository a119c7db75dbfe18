"""``check_refactoring``: the intended refactoring, and nothing else, in edited files (SWE-Refactor §3.2).

The published check is weaker: it looks only for the type in the edited files. Its result stands beside ours.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.errors import JavaError, SourceError
from codetaste.swe_refactor.answers.place import OTHER, TARGET_BEFORE, is_inlining
from codetaste.swe_refactor.enrich.places import find_places
from codetaste.swe_refactor.score.changes.extra_changes import find_extra_changes
from codetaste.swe_refactor.score.delegate import without_delegate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from codetaste.refactorings.model import CodeRange, Detection, Refactoring
    from codetaste.refactorings.service import RefactoringService
    from codetaste.swe_refactor.dataset.instance import DiffLocation, RefactoringInstance
    from codetaste.swe_refactor.enrich.places import RefactoringPlaces

_CLASS = re.compile(r"\bclass ([\w.$]+)")
_MAX_EXTRA = 50


class CheckOutcome(StrEnum):
    """The result of a check; the reasons are in the order in which they are looked for."""

    VERIFIED = "verified"
    TOOL_FAILED = "tool_failed"
    """RefactoringMiner gave no answer: no fault of the answer."""
    NONE_FOUND = "none_found"
    OTHER_TYPE = "other_type"
    OTHER_METHOD = "other_method"
    """The type is right; another method is refactored, or inlined into another one."""
    OTHER_CLASS = "other_class"
    """The method, or what was extracted from it, is moved to another class than the developers'."""
    IMPURE = "impure"
    """PurityChecker says that more was changed in the code of the refactoring."""
    PURITY_UNKNOWN = "purity_unknown"
    EXTRA_CHANGE = "extra_change"
    """Other code was changed, or another refactoring was done elsewhere."""


@dataclass(frozen=True, slots=True)
class RefactoringCheck:
    """What the check of one answer gave.

    Attributes:
        outcome: VERIFIED, or the first reason why not.
        detail: the reason in one line; "" for a verified one.
        published: the result of the published check: the type occurs in the edited files.
        extra: what else was changed, one line each, at most 50; only where the refactoring itself was found.
    """

    outcome: CheckOutcome
    detail: str = ""
    published: bool = False
    extra: tuple[str, ...] = ()

    @property
    def is_verified(self) -> bool:
        """Whether the intended refactoring was done, and nothing else."""
        return self.outcome is CheckOutcome.VERIFIED

    def to_json(self) -> dict[str, Any]:
        """Return the check as JSON data."""
        return {**asdict(self), "outcome": self.outcome.value, "extra": list(self.extra)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        return cls(**{**data, "outcome": CheckOutcome(data["outcome"]), "extra": tuple(data["extra"])})


async def check_refactoring(
    instance: RefactoringInstance,
    base: Mapping[str, bytes],
    edited: Mapping[str, bytes | None],
    service: RefactoringService,
) -> RefactoringCheck:
    """Check an answer by the contents of the files that it changes.

    A delegate that a move leaves in place of the method is left out, as published: callers need it, and
    with it RefactoringMiner finds an extraction. Any other rest of the method makes it another type.

    Args:
        instance: the instance that was asked.
        base: files before, by path; at least those of ``edited`` that exist.
        edited: the whole new content of the changed files; None for a deleted one.
        service: RefactoringMiner with PurityChecker.
    """
    changed = {path: data for path, data in edited.items() if base.get(path) != data}
    before = {path: base[path] for path in changed if path in base}
    after = {path: data for path, data in changed.items() if data is not None}
    strict = await to_thread.run_sync(without_delegate, instance, before, after)
    loose = await to_thread.run_sync(partial(without_delegate, instance, before, after, anything=True))
    try:
        found = await _detect(service, before, strict)
        published = found if loose == strict else await _detect(service, before, loose)
    except JavaError as error:
        return RefactoringCheck(CheckOutcome.TOOL_FAILED, str(error))
    is_published = any(each.type == instance.type for each in published.refactorings)
    outcome, detail, extra = await to_thread.run_sync(_judge, instance, found, before, strict)
    return RefactoringCheck(outcome, detail, is_published, extra[:_MAX_EXTRA])


async def _detect(
    service: RefactoringService, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> Detection:
    sides = [
        {path: data.decode("utf-8", "replace") for path, data in side.items()} for side in (before, after)
    ]
    return await service.detect_contents(*sides)


def _judge(
    instance: RefactoringInstance, found: Detection, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> tuple[CheckOutcome, str, tuple[str, ...]]:
    """Return outcome, detail, and what else was changed."""
    intended, reason = _find_intended(instance, found.refactorings)
    if reason is not None:
        return *reason, ()
    extra = (
        *_refactorings_elsewhere(found.refactorings, intended),
        *find_extra_changes(instance, before, after, [places for _, places in intended]),
    )
    for each, _ in intended:
        if each.purity is None:
            detail = found.purity_error or "PurityChecker does not judge it"
            return CheckOutcome.PURITY_UNKNOWN, detail, extra
        if not each.purity.pure:
            return CheckOutcome.IMPURE, each.purity.comment or each.purity.description, extra
    if extra:
        return CheckOutcome.EXTRA_CHANGE, extra[0], extra
    return CheckOutcome.VERIFIED, "", ()


def _find_intended(
    instance: RefactoringInstance, found: Sequence[Refactoring]
) -> tuple[list[tuple[Refactoring, RefactoringPlaces]], tuple[CheckOutcome, str] | None]:
    """Return the refactorings of the intended type and method, and why they are not what was asked."""
    of_type = [each for each in found if each.type == instance.type]
    intended = [(each, places) for each in of_type if (places := _places_of_target(instance, each))]
    wanted = _target_class(instance, instance.description)
    reason = None
    if not found:
        reason = CheckOutcome.NONE_FOUND, "no refactoring was found in the edited files"
    elif not of_type:
        types = ", ".join(sorted({each.type for each in found}))
        reason = CheckOutcome.OTHER_TYPE, f"no {instance.type} was found, but {types}"
    elif not any(_is_at(places.before, instance.diff_locations[TARGET_BEFORE]) for _, places in intended):
        reason = CheckOutcome.OTHER_METHOD, of_type[0].description
    elif wanted and (
        others := [each for each, _ in intended if _target_class(instance, each.description) != wanted]
    ):
        reason = CheckOutcome.OTHER_CLASS, f"not to {wanted}: {others[0].description}"
    return intended, reason


def _places_of_target(instance: RefactoringInstance, refactoring: Refactoring) -> RefactoringPlaces | None:
    """Return the places of a refactoring of the intended method; None for one of another method.

    An inlined method may have several callers: each is a refactoring of its own.
    """
    try:
        places = find_places(refactoring)
    except SourceError:
        return None
    location = instance.diff_locations[OTHER if is_inlining(instance) else TARGET_BEFORE]
    return places if _is_at(places.target, location) else None


def _is_at(place: CodeRange, location: DiffLocation) -> bool:
    """Return whether both are one method; releases differ in whether its documentation belongs to it."""
    return (
        place.path == location.file_path
        and place.end_line == location.end_line
        and max(place.start_line, location.start_line) <= place.end_line
    )


def _target_class(instance: RefactoringInstance, description: str) -> str | None:
    """Return the class that a method is moved to, by RefactoringMiner's sentence; None without a move."""
    if is_inlining(instance) or "Move" not in instance.type:
        return None
    names = _CLASS.findall(description)
    return names[-1] if names else None


def _refactorings_elsewhere(
    found: Iterable[Refactoring], intended: Sequence[tuple[Refactoring, RefactoringPlaces]]
) -> list[str]:
    """Return the sentences of those that are not inside of the methods of the intended ones.

    Inside of them PurityChecker decides, as about a parameter that is renamed in an extracted method. A class
    to which the method moves may be a new one, extracted from the class before.
    """
    own = {id(each) for each, _ in intended}
    places = [places for _, places in intended]
    left = [each for place in places for each in (place.before, place.inlined) if each]
    right = [each for place in places for each in (place.after, place.extracted) if each]
    return [
        each.description
        for each in found
        if id(each) not in own
        and not (_inside(each.left, left) and _inside(each.right, right))
        and not (each.type == "Extract Class" and _inside(right, each.right))
    ]


def _inside(ranges: Iterable[CodeRange], methods: Sequence[CodeRange]) -> bool:
    return all(
        any(
            method.path == each.path
            and method.start_line <= each.start_line
            and each.end_line <= method.end_line
            for method in methods
        )
        for each in ranges
    )
