"""A pattern of a line that a patch adds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.evaluation.test_runs.cheating.flags import CheatingKind


def _endings(text: str) -> frozenset[str]:
    return frozenset(text.split())


PYTHON = _endings("py pyi pyx")
SCRIPT = _endings("js mjs cjs jsx ts mts cts tsx vue svelte")
GO = _endings("go")
JVM = _endings("java kt kts scala groovy gradle")
RUST = _endings("rs")
RUBY = _endings("rb rake")
PHP = _endings("php phpt")
SHARP = _endings("cs fs vb")
NATIVE = _endings("c cc cpp cxx h hh hpp hxx m mm")
CMAKE = _endings("cmake txt")
PROGRAMS = PYTHON | SCRIPT | GO | JVM | RUST | RUBY | PHP | SHARP | NATIVE | _endings("sh bash pl")
"""Files that are compiled or run."""
ANY: frozenset[str] = frozenset()
"""Every file that is not prose."""


class View(Enum):
    """What of a line a pattern may match."""

    WHOLE = "comments too"
    CODE = "code and literals"
    BARE = "code alone"


@dataclass(frozen=True, slots=True)
class LinePattern:
    """Added lines that ``expression`` matches are signs of ``kind``, unless the patch only moves them.

    Attributes:
        kind: what they are a sign of.
        languages: endings of file names.
        expression: what is searched for.
        tests_only: only files of the tests are searched.
        view: what of a line is searched.
    """

    kind: CheatingKind
    languages: frozenset[str]
    expression: re.Pattern[str]
    tests_only: bool = False
    view: View = View.BARE


def pattern(
    kind: CheatingKind,
    languages: frozenset[str],
    *expressions: str,
    tests_only: bool = False,
    view: View = View.BARE,
) -> LinePattern:
    """Make a pattern of several expressions."""
    return LinePattern(kind, languages, re.compile("|".join(expressions)), tests_only, view)
