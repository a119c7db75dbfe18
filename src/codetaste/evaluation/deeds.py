"""Classify one shell text by the traits that ``Activity`` counts."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.evaluation.bulk_edits import BulkEditKind, bulk_edit_kind
from codetaste.evaluation.programs import programs_in
from codetaste.evaluation.test_runs import runs_tests


@dataclass(frozen=True, slots=True)
class CommandTraits:
    """What a command does at least once.

    Attributes:
        runs_tests: it runs tests.
        bulk_edit: it replaces text in place.
        wide_edit: it replaces text in place in several files.
        scripted_edit: it rewrites files by a codemod tool or a script.
        applies_patch: it applies a patch.
        complete: it was parsed completely.
    """

    runs_tests: bool = False
    bulk_edit: bool = False
    wide_edit: bool = False
    scripted_edit: bool = False
    applies_patch: bool = False
    complete: bool = True


def command_traits(text: str) -> CommandTraits:
    """Return what the shell text ``text`` does."""
    found, whole = programs_in(text)
    kinds = {bulk_edit_kind(program) for program in found}
    return CommandTraits(
        runs_tests=any(map(runs_tests, found)),
        bulk_edit=not kinds.isdisjoint({BulkEditKind.ONE_FILE, BulkEditKind.SEVERAL_FILES}),
        wide_edit=BulkEditKind.SEVERAL_FILES in kinds,
        scripted_edit=BulkEditKind.SCRIPT in kinds,
        applies_patch=any(_applies_patch(program.name, program.arguments) for program in found),
        complete=whole,
    )


def _applies_patch(name: str, arguments: tuple[str, ...]) -> bool:
    read_only = {"--check", "--stat", "--numstat", "--summary", "--dry-run", "--help"}
    applies = name in {"apply_patch", "applypatch", "patch"} or (name == "git" and "apply" in arguments[:3])
    return applies and read_only.isdisjoint(arguments)
