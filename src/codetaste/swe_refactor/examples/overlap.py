"""Examples must not give away instances: the same commit, or the same method."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.examples.example import RefactoringExample

_PARTS = re.compile(
    r'(?P<literal>"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<space>\s+)",
    re.DOTALL,
)
_LEAST_CHARS = 40
"""Shorter methods, without space, are equal by chance, such as getters: only their commit counts."""


def normalise_code(text: str) -> str:
    """Return Java code without comments and space between tokens; texts in quotes stay."""
    return _PARTS.sub(lambda match: match["literal"] or "", text)


@dataclass(frozen=True, slots=True)
class InstanceOverlap:
    """Commits and normalised methods of instances, each with the id of one that has it."""

    commits: Mapping[str, str]
    methods: Mapping[str, str]

    @classmethod
    def of(cls, instances: Iterable[RefactoringInstance]) -> InstanceOverlap:
        """Return what examples must not have."""
        commits: dict[str, str] = {}
        methods: dict[str, str] = {}
        for each in instances:
            commits.setdefault(each.commit_id, each.unique_id)
            for code in (each.source_code_before_refactoring, each.source_code_after_refactoring):
                methods.setdefault(normalise_code(code), each.unique_id)
            for code in each.diff_source_code_set:
                methods.setdefault(normalise_code(code), each.unique_id)
        return cls(commits, methods)

    def reason(self, example: RefactoringExample) -> str:
        """Return what an example has in common with an instance; "" if nothing.

        A commit's name is that of all forks of its repository, so it stands for both.
        """
        if instance := self.commits.get(example.commit_id):
            return f"its commit {example.commit_id[:12]} is that of the instance {instance}"
        sides = {
            "before": example.source_code_before_refactoring,
            "after": example.source_code_after_refactoring,
        }
        for side, code in sides.items():
            plain = normalise_code(code)
            if len(plain) >= _LEAST_CHARS and (instance := self.methods.get(plain)):
                return f"its method {side} is one of the instance {instance}"
        return ""
