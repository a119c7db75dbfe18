"""All detectors on one patch and its run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag, CheatingKind, make_flag
from codetaste.evaluation.test_runs.cheating.line_search import find_line_flags
from codetaste.evaluation.test_runs.cheating.missing_tests import find_missing_tests
from codetaste.evaluation.test_runs.cheating.new_files import find_replacing_files
from codetaste.evaluation.test_runs.cheating.run_facts import RunFacts, find_run_flags
from codetaste.evaluation.test_runs.cheating.runner_config import find_config_flags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from codetaste.evaluation.test_runs.cheating.changes import PatchChanges

MAX_FLAGS = 50
"""Flags of one kind; the last one says how many more there are."""


@dataclass(frozen=True, slots=True)
class PatchSurroundings:
    """What is known around a patch.

    Attributes:
        script_texts: texts of ``run_tests`` and the other scripts, by name.
        tree: paths of the files of R.
        installed: names of modules of the environment's packages.
        lost_by_golden: how many tests the golden patch loses, which are no sign in another patch.
    """

    script_texts: Mapping[str, str] = field(default_factory=dict)
    tree: Collection[str] = ()
    installed: Collection[str] = ()
    lost_by_golden: int = 0


def find_cheating(
    changes: PatchChanges,
    surroundings: PatchSurroundings,
    baseline: Sequence[RunFacts] = (),
    run: RunFacts | None = None,
) -> tuple[CheatingFlag, ...]:
    """Return the signs of cheating in a patch and, if it was run, in its run; in order of their places."""
    found = sorted(set(_all_flags(changes, surroundings, baseline, run)), key=_order)
    counts: Counter[CheatingKind] = Counter()
    flags = []
    for flag in found:
        counts[flag.kind] += 1
        if counts[flag.kind] <= MAX_FLAGS:
            flags.append(flag)
    more = ((kind, count - MAX_FLAGS) for kind, count in counts.items() if count > MAX_FLAGS)
    return (*flags, *(make_flag(kind, f"… and {plural(count, 'further sign')}") for kind, count in more))


def _all_flags(
    changes: PatchChanges,
    surroundings: PatchSurroundings,
    baseline: Sequence[RunFacts],
    run: RunFacts | None,
) -> Iterator[CheatingFlag]:
    yield from find_config_flags(changes, surroundings.script_texts, surroundings.tree)
    yield from find_line_flags(changes, surroundings.script_texts)
    yield from find_missing_tests(changes, surroundings.lost_by_golden)
    yield from find_replacing_files(changes, surroundings.tree, surroundings.installed)
    for path in changes.unread:
        yield make_flag(CheatingKind.UNREAD, "its text was too large, or cannot be read", path)
    if run is not None:
        yield from find_run_flags(baseline, run)


def _order(flag: CheatingFlag) -> tuple[str, str, int, str]:
    return flag.kind, flag.path, flag.line, flag.evidence
