"""A pool of JVMs with one Java program: requests wait for a free one, and a hung or dead one is replaced."""

from __future__ import annotations

import os
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.files import make_locked_folder, remove_abandoned, remove_tree
from codetaste.errors import JavaError, JavaOutcome
from codetaste.java.worker.classes import compile_program
from codetaste.java.worker.jvm import Jvm, start_jvm

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from codetaste.java.worker.program import JavaProgram


_SCRATCH = "codetaste-java-"


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """What a pool did: ``started`` JVMs, ``answered`` requests, and those without an answer by outcome."""

    started: int
    answered: int
    timeouts: int
    deaths: int


@dataclass(slots=True, eq=False)
class JavaWorkers:
    """At most ``size`` JVMs, each started when a request finds no idle one.

    A request has its own time limit, without the time that it waits for a JVM and the start of it. When it
    ends, or its JVM dies, the JVM is replaced and all other requests go on.
    """

    program: JavaProgram
    size: int
    cache: Path | None
    _scratch: Path
    _slots: anyio.Semaphore
    _compiling: anyio.Lock = field(default_factory=anyio.Lock)
    _idle: list[Jvm] = field(default_factory=list)
    _running: set[Jvm] = field(default_factory=set)
    _started: int = 0
    _answered: int = 0
    _failures: list[JavaOutcome] = field(default_factory=list)

    async def ask(self, request: Mapping[str, Any], timeout_s: float) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to ``request``, a JSON object, within ``timeout_s`` seconds of a JVM.

        A request whose JVM dies is repeated once in a new one, unless that was new: what earlier requests
        left in memory is no reason for this one to fail.

        Raises:
            JavaError: there is no answer; ``outcome`` says why.
        """
        async with self._slots:
            jvm = await self._take()
            fresh = not jvm.served
            try:
                return await self._ask(jvm, request, timeout_s)
            except JavaError as error:
                if fresh or error.outcome not in {JavaOutcome.CRASH, JavaOutcome.MEMORY}:
                    raise
            return await self._ask(await self._start(), request, timeout_s)

    async def _ask(self, jvm: Jvm, request: Mapping[str, Any], timeout_s: float) -> Any:  # noqa: ANN401
        usable = False
        try:
            answer = await jvm.ask(request, timeout_s)
            usable = True
        except JavaError as error:
            usable = error.outcome is JavaOutcome.FAILED
            self._failures.append(error.outcome)
            raise
        finally:
            if usable:
                self._idle.append(jvm)
            else:
                await self._end(jvm)
        self._answered += 1
        return answer

    async def _take(self) -> Jvm:
        """Return an idle JVM that lives, or start one."""
        while self._idle:
            jvm = self._idle.pop()  # the last one used: the others may never be needed
            if jvm.alive:
                return jvm
            await self._end(jvm)
        return await self._start()

    async def _start(self) -> Jvm:
        self._started += 1
        scratch = self._scratch / str(self._started)
        await to_thread.run_sync(scratch.mkdir)
        program = self.program
        if self.cache is not None:
            async with self._compiling:
                program = await compile_program(program, self.cache)
        jvm = await start_jvm(program, scratch)
        self._running.add(jvm)
        return jvm

    async def _end(self, jvm: Jvm) -> None:
        self._running.discard(jvm)
        await jvm.kill()

    async def close(self) -> None:
        """End all JVMs."""
        self._idle.clear()
        for jvm in list(self._running):
            await self._end(jvm)

    def statistics(self) -> PoolStatistics:
        """Return what the pool did so far."""
        timeouts = self._failures.count(JavaOutcome.TIMEOUT)
        deaths = sum(each in {JavaOutcome.CRASH, JavaOutcome.MEMORY} for each in self._failures)
        return PoolStatistics(self._started, self._answered, timeouts, deaths)


@asynccontextmanager
async def java_workers(
    program: JavaProgram, size: int, cache: Path | None = None
) -> AsyncIterator[JavaWorkers]:
    """Open a pool of at most ``size`` JVMs with ``program``; at the end all of them are killed.

    Args:
        program: what they run.
        size: the number of JVMs.
        cache: the cache folder, for the compiled program; without it each JVM compiles it.
    """
    within = Path(tempfile.gettempdir())
    await to_thread.run_sync(remove_abandoned, within, _SCRATCH)  # of killed processes
    scratch, lock = await to_thread.run_sync(make_locked_folder, within, _SCRATCH)
    workers = JavaWorkers(program, size, cache, scratch, anyio.Semaphore(size))
    try:
        yield workers
    finally:
        with anyio.CancelScope(shield=True):
            await workers.close()
            await to_thread.run_sync(remove_tree, scratch)
        os.close(lock)
