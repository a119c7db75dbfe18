"""What is to be run and where: the plan that an engine turns into a program to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.sandbox.guard import Guard
    from codetaste.sandbox.sandbox import Limits
    from codetaste.sandbox.view import SystemView

SCRATCH_BYTES = 64 * 1024**2
"""How much a command may write to its own temporary folder, and to any one file."""
OPEN_FILES = 1024


@dataclass(frozen=True, slots=True)
class Order:
    """One command in one place. Paths are real ones of this machine."""

    command: tuple[str, ...]
    tree: Path
    tools: Mapping[str, Path]
    env: Mapping[str, str]
    limits: Limits
    view: SystemView


@dataclass(frozen=True, slots=True)
class Start:
    """A program that, when started, runs an order contained, and reports on ``status``.

    ``status`` is the reading end of a pipe that gets lines of JSON: ``{"child-pid": N}`` once there is a
    first process inside, ``{"exit-code": N}`` when the command ended, ``{"error": text}`` when it could not
    be contained.
    """

    argv: tuple[str, ...]
    passed: tuple[int, ...]
    """Descriptors that the program inherits; the caller closes them after the start."""
    status: int
    namespaced: bool
    """Whether the first process inside, when killed, takes all others with it."""
    own_processes: int
    """How many of the processes are the engine's own."""
    guard: Guard | None = None
    """What kills the program should we be gone."""
    scratch: Path | None = None
    """A folder of this machine that the command may write to, removed by the program at the end."""
