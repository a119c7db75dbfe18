"""What is verified: two commits of a repository, and the methods of a refactoring on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.java.build.coverage import CoverageTarget


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """The class that a method is moved to, "org.example.Outer.Inner"; "" if only its file is known."""

    path: str
    class_name: str = ""


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """A refactoring that may become an instance.

    Attributes:
        key: of its job, for labels and messages.
        before: the commit before the refactoring, a full hash.
        after: the commit with it.
        before_methods: its methods before the commit: the target method.
        after_methods: its methods after the commit; may be empty.
        move_targets: classes that must exist before the commit.
    """

    key: str
    before: str
    after: str
    before_methods: tuple[CoverageTarget, ...]
    after_methods: tuple[CoverageTarget, ...] = ()
    move_targets: tuple[MoveTarget, ...] = ()
