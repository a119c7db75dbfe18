"""JDK releases that the CI configuration of a project names, read from its lines: the formats are many."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.java.build.build_system import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILES = (
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
    ".travis.yml",
    ".circleci/config.yml",
    ".gitlab-ci.yml",
    "azure-pipelines.yml",
    "appveyor.yml",
    "Jenkinsfile",
    ".cirrus.yml",
)
_KEY = re.compile(
    r"^(?P<indent>\s*)(?:-\s+)?['\"]?(?:java|jdk|java[-_]version|jdk[-_]version|jdkVersion)['\"]?\s*:(?P<rest>.*)$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^(?P<indent>\s*)-\s+(?P<rest>[^:]+)$")
_VALUE = re.compile(
    r"(?:(?:open|oracle)?jdk|temurin|zulu|corretto|adopt(?:open)?jdk)?[-@:\s]*(?:ea-?)?((?:1\.)?\d{1,2}(?:\.\d+)*)(?![\w])",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"(?:\b(?:open|oracle)jdk[-:]?|\bjdk[ '\"]*[-_: ]?|\beclipse-temurin:"
    r"|\bmaven:[\d.]+-(?:jdk-|openjdk-|eclipse-temurin-))"
    r"((?:1\.)?\d{1,2})\b",
    re.IGNORECASE,
)
_MAX_FILES, _MAX_VERSION, _MIN_VERSION = 50, 40, 5
_MAX_LINE_CHARS = 2000
"""Longer lines say nothing about a JDK, and would keep these patterns busy for hours."""


def find_ci_versions(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield (release, file) for each release that a CI file of the project names. Blocking."""
    files = [path for pattern in _FILES for path in sorted(tree.glob(pattern))]
    for path in files[:_MAX_FILES]:
        place = path.relative_to(tree).as_posix()
        for version in _versions(read_text(path)):
            if _MIN_VERSION <= int(version.removeprefix("1.").partition(".")[0]) <= _MAX_VERSION:
                yield version, place


def _versions(text: str) -> Iterator[str]:
    under: int | None = None
    for raw in text.splitlines():
        if len(raw) > _MAX_LINE_CHARS:
            continue
        line = raw.split(" #", 1)[0].rstrip()
        if found := _KEY.match(line):
            rest = found["rest"].strip()
            under = None if rest else len(found["indent"])
            yield from () if "${{" in rest else _VALUE.findall(rest)
            continue
        item = _ITEM.match(line)
        if under is not None and item and len(item["indent"]) >= under:
            yield from _VALUE.findall(item["rest"])
            continue
        if line.strip():
            under = None
        yield from _INLINE.findall(line)
