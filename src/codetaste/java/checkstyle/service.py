"""Checkstyle in JVMs: the violations of a rule set in Java texts, by default of ``code_smells.xml``."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from codetaste.core.hashing import file_sha256
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import class_path
from codetaste.java.jdk import find_jdk
from codetaste.java.worker.pool import JavaWorkers, java_workers
from codetaste.java.worker.program import JavaProgram

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

CHECKSTYLE = "checkstyle-12.3.1"
"""The set of its jars: the newest release that runs on Java 17."""
RULES = Path(__file__).with_name("code_smells.xml")
_MINIMUM_JDK = 17
_HEAP_BYTES = 512 * 1024**2
_TIMEOUT_S = 300.0
_WORKER = Path(__file__).with_name("CheckstyleWorker.java")
_OPTIONS = ("-XX:TieredStopAtLevel=1",)


@checked_dataclass(frozen=True, slots=True)
class StyleViolation:
    """A violation: of ``rule``, in a line of a file, with Checkstyle's message."""

    path: str
    line: int
    rule: str
    message: str


@checked_dataclass(frozen=True, slots=True)
class StyleReport:
    """The violations, by path and line, and the paths of texts that cannot be read."""

    violations: tuple[StyleViolation, ...]
    unreadable: tuple[str, ...]


_REPORT = TypeAdapter(StyleReport)


@dataclass(frozen=True, slots=True)
class CheckstyleService:
    """Answers from JVMs with Checkstyle; ``rules`` is its configuration."""

    workers: JavaWorkers
    rules: str

    async def check(self, contents: Mapping[str, str]) -> StyleReport:
        """Return the violations in Java texts by their paths.

        Raises:
            JavaError: no answer in time, a JVM that failed, or rules that Checkstyle does not take.
        """
        request = {"rules": self.rules, "contents": dict(contents)}
        return _REPORT.validate_python(await self.workers.ask(request, _TIMEOUT_S))


@asynccontextmanager
async def open_checkstyle(cache: Path, *, size: int = 1) -> AsyncIterator[CheckstyleService]:
    """Open Checkstyle on at most ``size`` JVMs, each started when it is needed.

    Args:
        cache: the cache folder with the installed jars.
        size: the number of JVMs.

    Raises:
        ToolMissing: Checkstyle or a JDK is not installed.
    """
    jdk = await find_jdk(_MINIMUM_JDK, purpose="Checkstyle", cache=cache)
    jars = await to_thread.run_sync(class_path, load_artifact_set(CHECKSTYLE), cache)
    rules = await to_thread.run_sync(RULES.read_text, "utf-8")
    program = JavaProgram("Checkstyle", jdk, _WORKER, jars, _HEAP_BYTES, _OPTIONS)
    async with java_workers(program, size, cache) as workers:
        yield CheckstyleService(workers, rules)


@cached
def checkstyle_digests() -> tuple[str, ...]:
    """Return what decides answers: the release, and the digests of rules and program. Blocking."""
    return CHECKSTYLE, file_sha256(RULES), file_sha256(_WORKER)
