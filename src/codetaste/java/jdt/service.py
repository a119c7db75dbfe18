"""Eclipse JDT as a service: questions about source trees and Java texts, answered by a pool of JVMs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import cache as cached
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from pydantic import TypeAdapter

from codetaste.core.hashing import file_sha256
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import class_path
from codetaste.java.jdk import find_jdk
from codetaste.java.jdt.model import EnrichedTree, ParsedSources
from codetaste.java.jdt.source_index import SourceIndex
from codetaste.java.worker.pool import JavaWorkers, java_workers
from codetaste.java.worker.program import JavaProgram

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from codetaste.java.jdt.model import MethodTarget

ARTIFACT_SET = "jdt-3.46.0"
MINIMUM_JDK = 17
HEAP_BYTES = 2 * 1024**3
TIMEOUT_S = 600.0
_SHIM = Path(__file__).parent / "shim" / "Jdt.java"
_OPTIONS = ("-XX:TieredStopAtLevel=1",)
"""The second compiler costs twice the CPU time of a whole index before it pays."""

_TREE = TypeAdapter(EnrichedTree)
_SOURCES = TypeAdapter(ParsedSources)


@dataclass(frozen=True, slots=True)
class JdtService:
    """Answers from JVMs with Eclipse JDT.

    Attributes:
        workers: the JVMs. Each keeps the indexes of the last two source trees while it has room for them.
        timeout_s: limit of one request, seconds.
    """

    workers: JavaWorkers
    timeout_s: float = TIMEOUT_S

    async def enrich(
        self,
        root: Path,
        targets: Sequence[MethodTarget],
        *,
        libraries: Sequence[Path] = (),
        level: str | None = None,
    ) -> EnrichedTree:
        """Return the structure of the source tree in the folder ``root`` and the context of each target.

        Nothing is built. Calls into libraries outside the JDK and ``libraries`` are unresolved.

        Args:
            root: the folder; only its ``*.java`` files are read.
            targets: the methods.
            libraries: jars of the class path.
            level: the Java release as which sources are read, such as "17"; by default the newest, or 1.8 for
                the sources of a target whose file is Java only there.

        Raises:
            JavaError: no answer in time, or a JVM that ran out of memory or failed.
        """
        places = await to_thread.run_sync(lambda: [str(path.absolute()) for path in (root, *libraries)])
        request = {
            "op": "enrich",
            "root": places[0],
            "class_path": places[1:],
            "level": level,
            "targets": [asdict(target) for target in targets],
        }
        return _TREE.validate_python(await self.workers.ask(request, self.timeout_s))

    async def index(self, root: Path, near: str = "") -> SourceIndex:
        """Return all types, methods and calls of the source tree in the folder ``root``.

        Args:
            root: the folder; only its ``*.java`` files are read, as the newest Java.
            near: a folder in it: of files with one package and name the nearest to it counts.

        Raises:
            JavaError: as for ``enrich``.
        """
        request = {"op": "index", "root": str(await to_thread.run_sync(root.absolute)), "near": near}
        answer = await self.workers.ask(request, self.timeout_s)
        return await to_thread.run_sync(SourceIndex.from_json, answer)

    async def parse(self, contents: Mapping[str, str]) -> ParsedSources:
        """Return the types and methods of Java texts by their paths.

        Raises:
            JavaError: as for ``enrich``.
        """
        request = {"op": "parse", "contents": dict(contents)}
        return _SOURCES.validate_python(await self.workers.ask(request, self.timeout_s))


@asynccontextmanager
async def open_jdt(
    cache: Path, *, size: int = 1, heap_bytes: int = HEAP_BYTES, timeout_s: float = TIMEOUT_S
) -> AsyncIterator[JdtService]:
    """Open Eclipse JDT on at most ``size`` JVMs, each started when it is needed.

    Args:
        cache: the cache folder with the installed jars.
        size: the number of JVMs.
        heap_bytes: memory of each one.
        timeout_s: limit of one request, seconds.

    Raises:
        ToolMissing: JDT or a JDK is not installed.
    """
    jdk = await find_jdk(MINIMUM_JDK, purpose="Eclipse JDT", cache=cache)
    jars = await to_thread.run_sync(class_path, load_artifact_set(ARTIFACT_SET), cache)
    program = JavaProgram("Eclipse JDT", jdk, _SHIM, jars, heap_bytes, _OPTIONS)
    async with java_workers(program, size, cache) as workers:
        yield JdtService(workers, timeout_s)


@cached
def jdt_digests() -> tuple[str, ...]:
    """Return what decides answers: the release, and the digest of the program. Blocking."""
    return ARTIFACT_SET, file_sha256(_SHIM)
