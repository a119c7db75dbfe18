"""The spec of one contained command, and the plan by which an engine launches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.sandbox.guard import ParentDeathGuard
    from codetaste.sandbox.sandbox import CommandLimits
    from codetaste.sandbox.view import HostView

SCRATCH_BYTES = 64 * 1024**2
"""Limit of the temporary folder of a command, and of any one file that it writes."""
OPEN_FILES = 1024


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command in one folder. Paths are real ones of the host."""

    command: tuple[str, ...]
    tree: Path
    tools: Mapping[str, Path]
    env: Mapping[str, str]
    limits: CommandLimits
    view: HostView


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A program that runs a command contained, and reports on ``status``.

    ``status`` is the reading end of a pipe with lines of JSON: ``{"child-pid": N}`` once there is a first
    process in the namespace, ``{"exit-code": N}`` when the command ended, ``{"error": text}`` when it could
    not be contained.
    """

    argv: tuple[str, ...]
    inherited_fds: tuple[int, ...]
    """Descriptors that the program inherits; the caller closes them after the start."""
    status_fd: int
    has_pid_namespace: bool
    """Whether killing the first process ends all others."""
    own_processes: int
    """Number of processes of the engine itself."""
    guard: ParentDeathGuard | None = None
    """Kills the program when codetaste dies."""
    scratch: Path | None = None
    """A host folder that the command may write to, removed by the program at the end."""
