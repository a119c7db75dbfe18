"""Changes of the configuration of test runners, and of the files that the scripts name.

A file that only moves, or whose parts about tests stay, is no sign; neither is the configuration of a package
that the patch splits off or merges into another. Hooks in code are found line by line
(``patterns/runners.py``).

False positives: a refactoring that moves code changes paths in such files too: ``testMatch``, module maps, a
Makefile's list of test files; releases of a runner that change with the code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.evaluation.test_runs.cheating.changes import is_test_path
from codetaste.evaluation.test_runs.cheating.config_sections import find_sections
from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag, CheatingKind, make_flag

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from codetaste.evaluation.test_runs.cheating.changes import ChangedFile, PatchChanges

_NAMED_FILE = re.compile(
    r"(?<![\w$./@-])(?:/testbed/|\./)?((?:[\w.@-]+/)*[\w@-][\w.@-]*\.(?:sh|bash|[cm]?js|py|rb|pl|php|mk))\b"
)
_SHOWN_CHARS = 60
_SETTINGS = re.compile(
    r"(?:^|(?<=/))(?:\.(?:cargo|config)|(?:src/(?:test|main)/resources/)?META-INF|tests?|__tests__|spec)/.*"
)
"""The part of a path below the folder of a package."""


def find_config_flags(
    changes: PatchChanges, script_texts: Mapping[str, str], tree: Collection[str] = ()
) -> Iterator[CheatingFlag]:
    """Yield a flag for each part of a configuration that differs, and each file that a script runs.

    Args:
        changes: the patch.
        script_texts: texts of the environment's scripts by name.
        tree: paths of the files of R, if known.
    """
    packages = _Packages(changes, tree)
    script = "\n".join(script_texts.values())
    named = {name for name in _NAMED_FILE.findall(script) if not is_test_path(name)}
    for file in changes.files:
        old = find_sections(file.before, file.diff.old, script) if file.diff.old else {}
        new = find_sections(file.after, file.diff.new, script) if file.diff.new else {}
        comes_or_goes = packages.comes_or_goes(file)
        for key in old.keys() | new.keys():
            if old.get(key) != new.get(key) and not comes_or_goes:
                text = f"{key}: {_shown(old.get(key))} → {_shown(new.get(key))}"
                yield make_flag(CheatingKind.RUNNER_CONFIG, text, file.path, _line(file))
        if file.diff.old in named and (file.diff.new != file.diff.old or file.before != file.after):
            text = f"a script of the environment runs {file.diff.old}, which the patch changes"
            yield make_flag(CheatingKind.RUNNER_CONFIG, text, file.path, _line(file))


class _Packages:
    """The folders that a patch adds to R, or removes from it, with all that is in them."""

    def __init__(self, changes: PatchChanges, tree: Collection[str]) -> None:
        old = {file.diff.old for file in changes.files if file.diff.old is not None}
        new = {file.diff.new for file in changes.files if file.diff.new is not None}
        gone = {file.diff.old for file in changes.files if file.diff.new != file.diff.old}
        self._before = _folders({*tree, *old})
        self._after = _folders(({*tree, *old} - gone) | new)

    def comes_or_goes(self, file: ChangedFile) -> bool:
        """Whether a file comes or goes with its package; folders for settings are none."""
        if file.diff.old is not None and file.diff.new is not None:
            return False
        folder = _SETTINGS.sub("", file.path).rpartition("/")[0]
        others = self._before if file.diff.old is None else self._after
        return folder != "" and folder not in others


def _folders(paths: Iterable[str]) -> set[str]:
    """Return the folders of these files, and those around them."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _shown(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"


def _line(file: ChangedFile) -> int:
    """Return the first line that the patch adds, 0 if it adds none."""
    return next((number for number, _ in file.added_lines), 0)
