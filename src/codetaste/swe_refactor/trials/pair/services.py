"""``PairServices``: what the trials of developers and reviewers share."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import CapacityLimiter

from codetaste.java.checkstyle.service import CheckstyleService, open_checkstyle
from codetaste.java.jdt.service import open_jdt
from codetaste.swe_refactor.trials.pair.indexes import SourceIndexes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.swe_refactor.config import JavaConfig

_INDEXES = "java-indexes"
"""The folder of the cache with the indexes of source trees."""


@dataclass(frozen=True, slots=True)
class PairServices:
    """The services.

    Attributes:
        indexes: what the developers' tools read of the code.
        checkstyle: Checkstyle with our rules.
        builds: limits the builds for reviews. A trial does not hold a CPU while its models think, so that the
            scheduler does not count these builds.
    """

    indexes: SourceIndexes
    checkstyle: CheckstyleService
    builds: CapacityLimiter


@asynccontextmanager
async def open_pair_services(cache: Path, java: JavaConfig, cpus: int) -> AsyncIterator[PairServices]:
    """Open the services; their JVMs start when they are needed, and end with the block.

    Raises:
        ToolMissing: a JDK, or the jars of Eclipse JDT or Checkstyle, are not installed.
    """
    async with (
        open_jdt(cache, size=1, heap_bytes=java.jdt_memory, timeout_s=java.jdt_time_limit) as jdt,
        open_checkstyle(cache, size=1) as checkstyle,
    ):
        builds = CapacityLimiter(max(1, cpus // 2))  # the other half is for the scores of ended trials
        yield PairServices(SourceIndexes(jdt, cache / _INDEXES), checkstyle, builds)
