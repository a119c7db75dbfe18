"""The JDK that a config names for RefactoringMiner: it is used, or the run ends with a line about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ToolMissing
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_jdk

pytestmark = pytest.mark.anyio


def make_jdk(home: Path, release: str, *, compiler: bool = True) -> Path:
    """Make a folder whose java says that it is of a release."""
    (home / "bin").mkdir(parents=True)
    for name in ("java", "javac") if compiler else ("java",):
        program = home / "bin" / name
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{release}\"' >&2\n")
        program.chmod(0o755)
    return home


async def test_the_jdk_of_the_config_is_used(tmp_path: Path) -> None:
    home = make_jdk(tmp_path / "jdk", "25.0.1")
    assert (await refactoring_jdk(RefactoringMinerConfig(jdk=home), tmp_path)).home == home


@pytest.mark.parametrize(
    ("release", "compiler", "reason"),
    [("", True, "no JDK that works"), ("17.0.1", True, "release 17"), ("25", False, "without a compiler")],
)
async def test_no_other_jdk_replaces_that_of_the_config(
    tmp_path: Path, release: str, compiler: bool, reason: str
) -> None:
    home = make_jdk(tmp_path / "jdk", release, compiler=compiler)
    with pytest.raises(
        ToolMissing, match=f"refactoring_miner.jdk: {home}: .*{reason}.* needs a JDK of release 23"
    ):
        await refactoring_jdk(RefactoringMinerConfig(jdk=home), tmp_path)
