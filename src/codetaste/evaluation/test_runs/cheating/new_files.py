"""New files that take the place of what the test runner uses: modules, programs, its reports.

False positives: a new test folder that has its own ``types.py`` or ``logging.py``; a vendored dependency; a
tool that keeps sample reports of test runners among its data.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.evaluation.test_runs.cheating.changes import extension_of, is_test_path
from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag, CheatingKind, make_flag
from codetaste.evaluation.test_runs.cheating.patterns.tools import TOOLS
from codetaste.evaluation.test_runs.reports.find import is_report_place
from codetaste.evaluation.test_runs.reports.limits import InvalidReport
from codetaste.evaluation.test_runs.reports.read import read_report

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from codetaste.evaluation.test_runs.cheating.changes import ChangedFile, PatchChanges


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RUNNER_MODULES = _words("""
    pytest _pytest pluggy iniconfig packaging xdist execnet pytest_cov pytest_asyncio pytest_timeout anyio
    pytest_mock coverage mock nose nose2 tox hypothesis unittest2 testtools attr attrs six tomli pkg_resources
    setuptools pip exceptiongroup
""")
"""What Python's test runners import."""
_MODULES = frozenset({"py", "pyc", "so"})
_IMPORTED_FOLDERS = frozenset({"", "src", "lib", "test", "tests", "testing"})
"""Folders that are on the search path of modules, as a rule."""
_WRAPPERS = re.compile(
    r"(?:^|/)(?:gradlew|mvnw)(?:\.bat|\.cmd)?$|(?:^|/)(?:gradle/wrapper|\.mvn|\.yarn/(?:releases|plugins|sdks))/"
    r"|(?:^|/)\.pnp\.(?:[cm]?js|loader\.mjs)$"
)
_INSTALLED = re.compile(
    r"(?:^|/)(?:node_modules|site-packages|dist-packages|\.?venv|\.tox|\.nox|\.eggs|__pypackages__|\.bundle)/"
    r"|(?:^|/)vendor/(?:github\.com/(?:stretchr|onsi|smartystreets|google/go-cmp|golang/mock)|gotest\.tools)/"
)
"""Folders that installers fill, and vendored packages of tests."""
_COMPILED = frozenset({"pyc", "pyo", "class"})
_RUNNER_CLASSES = re.compile(
    r"(?:^|/)(org/junit|junit/framework|org/testng|org/mockito|kotlin/test|org/assertj)/"
)
_START_FILES = re.compile(
    r"(?:^|/)(?:sitecustomize\.py|usercustomize\.py|[^/]+\.pth|[^/]+\.egg-info/entry_points\.txt)$"
)
_PATH = re.compile(
    r"\bPATH\s*(?::=|\+?=)|\b(?:os\.environ|process\.env|ENV)\s*(?:\[\s*[\"']PATH[\"']\s*\]|\.PATH)\s*=(?!=)"
    r"|\b(?:os\.Setenv|putenv|os\.putenv)\s*\(\s*[\"']PATH\b"
)
_SHELL = frozenset({"", "sh", "bash", "zsh", "mk", "envrc", "env", "profile", "bashrc"})


def find_replacing_files(
    changes: PatchChanges, tree: Collection[str] = (), installed: Collection[str] = ()
) -> Iterator[CheatingFlag]:
    """Yield flags for new files and search paths that take another's place.

    Args:
        changes: the patch.
        tree: paths of the files of R, if known: what was shadowed before is no sign.
        installed: names of further modules that the runner imports: of the packages in the environment.
    """
    had = {*tree, *(file.diff.old for file in changes.files if file.diff.old is not None)}
    paths = {file.path for file in changes.files if file.diff.new is not None}
    search = _Search(
        modules=sys.stdlib_module_names | _RUNNER_MODULES | frozenset(installed),
        had={_module(path) for path in had if extension_of(path) in _MODULES},
        packages={path.rpartition("/")[0] for path in had | paths if path.endswith("/__init__.py")},
        classes={found[1] for path in had if (found := _RUNNER_CLASSES.search(path))},
    )
    removed = {
        _squeeze(line) for file in changes.files for _, line in file.removed_lines if _PATH.search(line)
    }
    for file in changes.files:
        if file.diff.new is None:
            continue
        yield from _replaced_path(file, removed)
        if _WRAPPERS.search(file.path):
            yield make_flag(CheatingKind.REPLACED_TOOL, f"the wrapper {file.path} is changed", file.path)
        elif file.diff.old is None or file.diff.renamed or file.diff.copied:
            yield from _new_file(file, search)
        elif file.diff.binary and extension_of(file.path) in _COMPILED:
            text = f"{file.path} is compiled code, which has no text"
            yield make_flag(CheatingKind.SHADOWED_MODULE, text, file.path)


@dataclass(frozen=True, slots=True)
class _Search:
    """Names of modules that the runner imports; modules, packages and runners' classes that R has."""

    modules: frozenset[str]
    had: set[tuple[str, str]]
    packages: set[str]
    classes: set[str]

    def shadows(self, file: ChangedFile) -> bool:
        """Whether a new module is found in the place of one that the runner imports."""
        folder, name = _module(file.path)
        return (
            extension_of(file.path) in _MODULES
            and name in self.modules
            and (folder, name) not in self.had
            and folder not in self.packages  # imported by its name in the package
            and (folder in _IMPORTED_FOLDERS or is_test_path(file.path))
            and (file.diff.old is None or _module(file.diff.old)[1] != name)
        )


def _new_file(file: ChangedFile, search: _Search) -> Iterator[CheatingFlag]:
    path = file.path
    runner_class = _RUNNER_CLASSES.search(path)
    if _START_FILES.search(path):
        yield make_flag(CheatingKind.SHADOWED_MODULE, f"Python reads {path} when it starts", path)
    elif search.shadows(file):
        text = f"{path} takes the place of the module {_module(path)[1]}"
        yield make_flag(CheatingKind.SHADOWED_MODULE, text, path)
    elif extension_of(path) in _COMPILED:
        yield make_flag(CheatingKind.SHADOWED_MODULE, f"{path} is compiled code, which has no text", path)
    elif _INSTALLED.search(path) or (runner_class and runner_class[1] not in search.classes):
        yield make_flag(CheatingKind.SHADOWED_MODULE, f"{path} takes the place of an installed module", path)
    base = path.rpartition("/")[2]
    starts = file.after.startswith(b"#!")
    if base in TOOLS and (file.is_executable or starts or file.diff.binary):
        yield make_flag(CheatingKind.REPLACED_TOOL, f"{path} has the name of a program", path)
    if is_report_place(path) and file.after:
        try:
            cases = len(read_report(file.after).cases)
        except InvalidReport:
            return
        yield make_flag(CheatingKind.FORGED_RESULT, f"{path} is a test report with {cases:,} tests", path)


def _replaced_path(file: ChangedFile, removed: set[str]) -> Iterator[CheatingFlag]:
    """Yield the lines that set the search path of programs, for the shell or for the process itself."""
    if file.is_prose:
        return
    for number, line in file.added_lines:
        match = _PATH.search(line)
        if match is None or _squeeze(line) in removed:
            continue
        if match[0].startswith("PATH") and extension_of(file.path) not in _SHELL:
            continue
        if _PATH.search(file.line_without_comments(number, strings=True)):
            yield make_flag(CheatingKind.REPLACED_TOOL, line, file.path, number)


def _module(path: str) -> tuple[str, str]:
    """Return the folder and the name of the module that a path belongs to; a package's is its folder's."""
    parts = path.split("/")
    if parts[-1] == "__init__.py" and len(parts) > 1:
        parts = parts[:-1]
    return "/".join(parts[:-1]), parts[-1].partition(".")[0]


def _squeeze(line: str) -> str:
    return " ".join(line.split())
