"""What the files of a project say about the JDK that builds it, and the order in which JDKs are tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.java.build.build_system import BuildTool, read_text
from codetaste.java.build.ci_files import find_ci_versions
from codetaste.java.build.pom import read_poms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from codetaste.java.build.build_system import Build
    from codetaste.java.build.pom import PomValue

JDKS = (8, 11, 17, 21, 25)
"""The JDKs of the Java image; the paper has the first four."""
_OLDEST_LEVELS = ((8, 1), (11, 6), (19, 7), (1000, 8))
"""(JDK, the oldest language level that JDKs up to it compile): 12 dropped level 6, 20 dropped 7."""
_VERSION = re.compile(r"(?:1\.)?(\d{1,2})(?![\d])")
_GRADLE_FILES = ("*.gradle", "*.gradle.kts", "gradle.properties")
_MAX_GRADLE_FILES = 500
_GRADLE_LEVEL = re.compile(
    r"""\b(?:source|target)Compatibility\s{0,20}(?:=|\s|\()\s{0,20}(?:JavaVersion\.VERSION_|JavaVersion\.toVersion\()?"""
    r"""['"]?(\d+(?:[._]\d+)?)|\boptions\.release(?:\.set\(|\s*=)\s*(\d+)"""
)
_GRADLE_TOOLCHAIN = re.compile(r"""JavaLanguageVersion\.of\(\s*['"]?(\d+)|\bjvmToolchain\(\s*(\d+)""")
_COMPILER = ".//plugin[artifactId='maven-compiler-plugin']//configuration"
_LEVEL_PROPERTIES = (
    "maven.compiler.release",
    "maven.compiler.source",
    "maven.compiler.target",
    "maven.compiler.testSource",
    "maven.compiler.testRelease",
    "java.version",
    "jdk.version",
    "javaVersion",
    "java.source.version",
)


class EvidenceKind(StrEnum):
    """What a piece of evidence says."""

    PINNED = "pinned"
    """The project names the JDK that builds it."""
    TESTED = "tested"
    """Its CI builds with the JDK."""
    LEVEL = "level"
    """The language level of its code: the JDK must know it."""


@dataclass(frozen=True, slots=True)
class JdkEvidence:
    """One piece of evidence: a feature release (8, 17) in a place of the project."""

    kind: EvidenceKind
    version: int
    place: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.kind} {self.version} ({printable(self.place)})"


def find_jdk_evidence(tree: Path, build: Build) -> tuple[JdkEvidence, ...]:
    """Return what the files of the project say, each version of a kind once, pinned ones first. Blocking."""
    found: dict[tuple[EvidenceKind, int], JdkEvidence] = {}
    for kind, text, place in _statements(tree, build):
        for version in parse_versions(text):
            found.setdefault((kind, version), JdkEvidence(kind, version, place))
    kinds = list(EvidenceKind)
    return tuple(sorted(found.values(), key=lambda each: kinds.index(each.kind)))


def parse_versions(text: str) -> tuple[int, ...]:
    """Return the feature release that ``text`` begins with: 8 for "1.8.0_202", 17 for "17.0.1-tem"."""
    found = _VERSION.match(text.replace("_", ".").strip().removeprefix("["))
    return (int(found[1]),) if found else ()


def order_jdks(evidence: Sequence[JdkEvidence], available: Sequence[int]) -> tuple[int, ...]:
    """Return the JDKs among ``available`` in the order in which they are tried.

    First those that the project names, then those that CI uses, then those that compile its language levels,
    each oldest first. Last come those that do not: a profile of the build may change the level.
    """
    able = able_jdks(evidence, available)
    order: list[int] = []
    for kind in (EvidenceKind.PINNED, EvidenceKind.TESTED):
        named = sorted({each.version for each in evidence if each.kind is kind})
        order += [jdk for jdk in named if jdk in able]
        # A release between two of ours: the next newer one.
        order += [jdk for name in named for jdk in [_next(name, able)] if jdk and name not in able]
    return tuple(dict.fromkeys([*order, *able, *sorted(available)]))


def able_jdks(evidence: Sequence[JdkEvidence], available: Sequence[int]) -> tuple[int, ...]:
    """Return the JDKs among ``available`` that compile all language levels of the project, oldest first."""
    levels = [each.version for each in evidence if each.kind is EvidenceKind.LEVEL]
    return tuple(jdk for jdk in sorted(available) if all(compiles(jdk, level) for level in levels))


def compiles(jdk: int, level: int) -> bool:
    """Whether the compiler of the JDK knows the language level."""
    oldest = next(level for newest, level in _OLDEST_LEVELS if jdk <= newest)
    return oldest <= level <= jdk


def _next(version: int, jdks: Sequence[int]) -> int:
    return next((jdk for jdk in jdks if jdk > version), 0)


def _statements(tree: Path, build: Build) -> Iterator[tuple[EvidenceKind, str, str]]:
    yield from _version_files(tree)
    if build.tool is BuildTool.MAVEN:
        yield from _of_poms(tree)
    else:
        yield from _of_gradle(tree)
    for text, place in find_ci_versions(tree):
        yield EvidenceKind.TESTED, text, place


def _version_files(tree: Path) -> Iterator[tuple[EvidenceKind, str, str]]:
    patterns = {
        ".java-version": r"^\D{0,20}?(\d[\w.]*)",
        ".sdkmanrc": r"^[ \t]*java[ \t]*=[ \t]*(\S+)",
        ".tool-versions": r"^[ \t]*java[ \t]+(?:[a-z]+-(?:[a-z0-9]+-)?)?(\d\S*)",
    }
    for name, pattern in patterns.items():
        if found := re.search(pattern, read_text(tree / name), re.MULTILINE):
            yield EvidenceKind.PINNED, found[1], name


def _of_poms(tree: Path) -> Iterator[tuple[EvidenceKind, str, str]]:
    poms = read_poms(tree)
    toolchains = poms.values(
        ".//plugin[artifactId='maven-toolchains-plugin']//jdk/version", ".//jdkToolchain/version"
    )
    for value in toolchains:
        yield EvidenceKind.PINNED, value.text, value.place
    levels: list[PomValue] = list(
        poms.values(
            *(f"{_COMPILER}/{name}" for name in ("release", "source", "target", "testSource", "testRelease"))
        )
    )
    if not levels:
        levels = list(
            poms.values(
                *(f"properties/{name}" for name in _LEVEL_PROPERTIES),
                "profiles/profile/properties/maven.compiler.release",
            )
        )
    for value in levels:
        yield EvidenceKind.LEVEL, value.text, value.place


def _of_gradle(tree: Path) -> Iterator[tuple[EvidenceKind, str, str]]:
    files = [path for pattern in _GRADLE_FILES for path in tree.rglob(pattern)]
    for path in sorted(files)[:_MAX_GRADLE_FILES]:
        content, place = read_text(path), path.relative_to(tree).as_posix()
        for found in _GRADLE_TOOLCHAIN.finditer(content):
            yield EvidenceKind.PINNED, found[1] or found[2], place
        for found in _GRADLE_LEVEL.finditer(content):
            yield EvidenceKind.LEVEL, found[1] or found[2], place
