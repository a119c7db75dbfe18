"""What one text of shell does, as far as it is counted."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.evaluation.bulk_edits import Bulk, bulk_edit
from codetaste.evaluation.programs import programs
from codetaste.evaluation.test_runs import runs_tests


@dataclass(frozen=True, slots=True)
class Deeds:
    """What a command does, however often it does it.

    Attributes:
        tests: it runs tests.
        bulk: it replaces text in place.
        wide: … in several files.
        scripted: it rewrites files by a codemod tool or a script.
        patches: it applies a patch.
        whole: it was read to its end.
    """

    tests: bool = False
    bulk: bool = False
    wide: bool = False
    scripted: bool = False
    patches: bool = False
    whole: bool = True


def deeds(text: str) -> Deeds:
    """Say what ``text`` does when a shell runs it."""
    found, whole = programs(text)
    kinds = {bulk_edit(program) for program in found}
    return Deeds(
        tests=any(map(runs_tests, found)),
        bulk=not kinds.isdisjoint({Bulk.ONE, Bulk.SEVERAL}),
        wide=Bulk.SEVERAL in kinds,
        scripted=Bulk.SCRIPTED in kinds,
        patches=any(_applies(program.name, program.arguments) for program in found),
        whole=whole,
    )


def _applies(name: str, arguments: tuple[str, ...]) -> bool:
    shows = {"--check", "--stat", "--numstat", "--summary", "--dry-run", "--help"}
    applies = name in {"apply_patch", "applypatch", "patch"} or (name == "git" and "apply" in arguments[:3])
    return applies and shows.isdisjoint(arguments)
