"""The section ``[swe_refactor]``: how instances of SWE-Refactor are built (§3.3)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from codetaste.core.section import FilePath, Section
from codetaste.core.units import Bytes, Seconds
from codetaste.refactorings.config import RefactoringMinerConfig

RefactoringType = Literal[
    "Extract Method",
    "Move Method",
    "Inline Method",
    "Extract And Move Method",
    "Move And Inline Method",
    "Move And Rename Method",
]


class BuildConfig(Section):
    """`[swe_refactor.build]`: pure refactorings in the histories of Java projects become instances."""

    repositories: tuple[FilePath, ...] = Field(min_length=1)
    """Local clones of Java projects, bare or not."""
    commits: str = Field(default="HEAD", min_length=1)
    """The history that is read: a revision such as "main", or a range such as "v1.0..v2.0"."""
    newest: int | None = Field(default=None, ge=1)
    """Only so many of its commits, the newest ones; by default all."""
    types: tuple[RefactoringType, ...] = Field(
        default=(
            "Extract Method",
            "Move Method",
            "Inline Method",
            "Extract And Move Method",
            "Move And Inline Method",
            "Move And Rename Method",
        ),
        min_length=1,
    )
    """Types of refactorings that may become instances."""
    refactoring_miner: RefactoringMinerConfig = RefactoringMinerConfig()
    """Steps 1 and 2: how refactorings are detected."""
    jdt_time_limit: Seconds = Field(default=600.0, gt=0)
    """Step 3: time of one request to Eclipse JDT, such as the index of a project."""
    jdt_memory: Bytes = Field(default=2 * 1024**3, ge=64 * 1024**2)
    """Step 3: largest heap of a JVM with Eclipse JDT."""
    verify: bool = True
    """Step 4: whether candidates are compiled, tested and measured; without it all that step 3 leaves are
    instances, and none is verified."""
    image: str = ""
    """Step 4: image with the JDKs, Maven and Gradle; by default the one that `codetaste image build --java`
    makes."""
    hosts: tuple[str, ...] = ()
    """Step 4: hosts that builds may reach while they fetch dependencies, beside the Maven repository."""
    compile_time_limit: Seconds = Field(default=900.0, gt=0)
    """Step 4: time to compile one side once."""
    fetch_time_limit: Seconds = Field(default=1800.0, gt=0)
    """Step 4: time to fetch all that one side needs."""
    test_time_limit: Seconds = Field(default=1800.0, gt=0)
    """Step 4: time of all tests of one side."""
    jdks: int = Field(default=4, ge=1)
    """Step 4: how many JDKs are tried at most."""


class SweRefactorConfig(Section):
    """`[swe_refactor]`: the second benchmark, SWE-Refactor."""

    build: BuildConfig
    """How its instances are built."""
