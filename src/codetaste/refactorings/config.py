"""How RefactoringMiner is run: the release, its JVMs, and the limits of a request."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from codetaste.core.section import FilePath, Section
from codetaste.core.units import Bytes, Seconds


class RefactoringMinerConfig(Section):
    """How refactorings are detected."""

    version: Literal["3.1.4", "3.0.10"] = "3.1.4"
    """Release of RefactoringMiner: 3.1.4 needs Java 23 and knows several languages; 3.0.10 is the release
    of SWE-Refactor's authors, needs Java 17 and knows Java only."""
    time_limit: Seconds = Field(default=300.0, gt=0)
    """Time of one request, such as a commit; some commits would take hours."""
    memory: Bytes = Field(default=2 * 1024**3, ge=64 * 1024**2)
    """Largest heap of one JVM; a request that needs more has no answer."""
    workers: int | None = Field(default=None, ge=1, le=1024)
    """How many JVMs there are at most; by default one for each core."""
    jdk: FilePath | None = None
    """Folder of the JDK to use, if it is new enough; by default one is looked for."""
