"""Which tool builds a project: found by its files, or a named reason why none can."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.files import read_regular_file
from codetaste.core.hashing import file_sha256
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from pathlib import Path

GRADLE_FILES = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
_WRAPPER = "gradle/wrapper/gradle-wrapper.properties"
_OTHER_TOOLS = {
    "build.xml": "Ant",
    "build.sbt": "sbt",
    "WORKSPACE": "Bazel",
    "MODULE.bazel": "Bazel",
    "Android.bp": "Soong",
    "Makefile": "make",
    "BUCK": "Buck",
}
_DISTRIBUTION = re.compile(r"^distributionUrl\s*=\s*(\S+)", re.MULTILINE)
_VERSION = re.compile(r"gradle-(\d{1,9}(?:\.\d+)*)")
_BUILD_FILE = re.compile(
    rb"(?:.*/)?(?:pom\.xml|[^/]*\.gradle(?:\.kts)?|gradle\.properties|libs\.versions\.toml"
    rb"|gradle-wrapper\.properties|\.mvn/(?:extensions\.xml|maven\.config|jvm\.config)|gradle\.lockfile)"
)
_MAX_BYTES = 1024**2
_DEBIAN_GRADLE = 4


class BuildTool(StrEnum):
    """A tool that builds, and runs the tests."""

    MAVEN = "maven"
    GRADLE = "gradle"


@dataclass(frozen=True, slots=True)
class Build:
    """How a project is built.

    Attributes:
        tool: the tool; None if the project has none that is known here.
        problem: why there is none; "" if there is one.
        wrapper: the release that Gradle's wrapper names; "" without a wrapper, or for Maven, whose wrapper
            is not used.
        wrapper_url: the address of that release.
    """

    tool: BuildTool | None
    problem: str = ""
    wrapper: str = ""
    wrapper_url: str = ""

    @property
    def needs_wrapper(self) -> bool:
        """Whether the Gradle of Debian (4.8) is too old for it."""
        return bool(self.wrapper) and int(self.wrapper.partition(".")[0]) > _DEBIAN_GRADLE


def find_build(tree: Path) -> Build:
    """Return how the project in ``tree`` is built; Maven, if it has files of both. Blocking."""
    if (tree / "pom.xml").is_file():
        return Build(BuildTool.MAVEN)
    if any((tree / name).is_file() for name in GRADLE_FILES):
        url = ""
        if found := _DISTRIBUTION.search(read_text(tree / _WRAPPER)):
            url = found[1].replace("\\:", ":")
        version = _VERSION.search(url)
        return Build(BuildTool.GRADLE, wrapper=version[1] if version else "", wrapper_url=url)
    other = next((tool for name, tool in _OTHER_TOOLS.items() if (tree / name).is_file()), "")
    return Build(
        None,
        f"no pom.xml or build.gradle at the top; it is built with {other}"
        if other
        else "no pom.xml or build.gradle at the top",
    )


def project_folder(tree: Path, path: str) -> str:
    """Return the folder of the project with the file ``path``: the outermost with a build file. Blocking.

    Returns:
        Its path within ``tree``; "" for the top, also if no folder has a build file.
    """
    parents = path.split("/")[:-1]
    folders = ["/".join(parents[:depth]) for depth in range(len(parents) + 1)]
    return next((folder for folder in folders if find_build(tree / folder).tool is not None), "")


def is_build_file(path: str) -> bool:
    """Return whether a file, by its path, decides what a build needs to fetch, or how it is built."""
    return _BUILD_FILE.fullmatch(os.fsencode(path)) is not None


def build_files_digest(tree: Path) -> str:
    """Return a digest (hex) of the files that decide what a build needs to fetch. Blocking.

    Raises:
        OSError: the tree cannot be read.
    """
    digest = hashlib.sha256()
    root = os.fsencode(tree)
    for name, item in sorted(walk_tree(root), key=lambda each: each[0]):
        if _BUILD_FILE.fullmatch(name) and item.is_file(follow_symlinks=False):
            content = file_sha256(tree / os.fsdecode(name))  # of any size, unlike what is read of them
            digest.update(b"%d %s %s\n" % (len(name), name, bytes.fromhex(content)))
    return digest.hexdigest()


def read_text(path: Path) -> str:
    """Return the text of a small file, "" if there is none that can be read."""
    try:
        return read_regular_file(path, _MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
