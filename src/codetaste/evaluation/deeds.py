"""Classify one shell text by the traits that ``Activity`` counts."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.evaluation.bulk_edits import Bulk, bulk_edit
from codetaste.evaluation.programs import programs
from codetaste.evaluation.test_runs import runs_tests


@dataclass(frozen=True, slots=True)
class Deeds:
    """What a command does at least once.

    Attributes:
        runs_tests: it runs tests.
        bulk_edit: it replaces text in place.
        wide_edit: it replaces text in place in several files.
        scripted_edit: it rewrites files by a codemod tool or a script.
        applies_patch: it applies a patch.
        complete: it was parsed completely.
    """

    tests: bool = False
    bulk: bool = False
    wide: bool = False
    scripted: bool = False
    patches: bool = False
    whole: bool = True


def deeds(text: str) -> Deeds:
    """Return what the shell text ``text`` does."""
    found, whole = programs(text)
    kinds = {bulk_edit(program) for program in found}
    return Deeds(
        tests=any(map(runs_tests, found)),
        bulk=not kinds.isdisjoint({Bulk.ONE, Bulk.SEVERAL}),
        wide=Bulk.SEVERAL in kinds,
        scripted=Bulk.SCRIPTED in kinds,
        patches=any(_applies_patch(program.name, program.arguments) for program in found),
        whole=whole,
    )


def _applies_patch(name: str, arguments: tuple[str, ...]) -> bool:
    read_only = {"--check", "--stat", "--numstat", "--summary", "--dry-run", "--help"}
    applies = name in {"apply_patch", "applypatch", "patch"} or (name == "git" and "apply" in arguments[:3])
    return applies and read_only.isdisjoint(arguments)
