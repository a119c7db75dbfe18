"""A read-only shell on the host: a tree, system programs, and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SandboxError, ToolMissing
from codetaste.sandbox.base import CommandLimits, CommandResult
from codetaste.sandbox.containment.bubblewrap import WORKDIR
from codetaste.sandbox.containment.command import CommandSpec, run_contained
from codetaste.sandbox.containment.engine import BUBBLEWRAP, ContainmentEngine, choose_engine
from codetaste.sandbox.containment.host_view import command_environment, host_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_NO_TOOLS: Mapping[str, Path] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReadOnlyShell:
    """Commands see ``tree`` and system programs, read-only, and a new temporary folder each."""

    tree: Path
    engine: ContainmentEngine
    tools: Mapping[str, Path]

    @property
    def kind(self) -> str:
        """What contains the commands: bubblewrap or landlock."""
        return self.engine.kind

    @property
    def workdir(self) -> str:
        """Where commands see the tree: /testbed under bubblewrap, its real path under Landlock."""
        return WORKDIR if self.engine.kind == BUBBLEWRAP else str(self.tree)

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: CommandLimits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run ``command`` to its end, its time limit, or cancellation; all its processes are then gone.

        Of each output stream at most ``limits.output_bytes`` are returned: its beginning and end, with a note
        between them. A command that is killed for exceeding a limit ends with 137 and a line on standard
        error that names the limit.

        Raises:
            SandboxError: it could not be started or contained.
        """
        limits = limits or CommandLimits()
        if not command or any("\0" in part for part in command):
            raise SandboxError(f"not a command: {list(command)!r}")
        view = await to_thread.run_sync(host_view)
        spec = CommandSpec(
            tuple(command), self.tree, self.tools, {**command_environment(), **(env or {})}, limits, view
        )
        try:
            plan = await to_thread.run_sync(self.engine.plan_launch, spec)
        except OSError as fault:
            raise SandboxError(
                f"cannot prepare a contained command: {fault}; free some space or descriptors"
            ) from fault
        return await run_contained(plan, limits, stdin)


def read_only_shell(
    tree: Path, *, tools: Mapping[str, Path] = _NO_TOOLS, engine: ContainmentEngine | None = None
) -> ReadOnlyShell:
    """Return a shell on the folder ``tree``, with the single programs ``tools`` (name → file) on PATH.

    Without ``engine`` the best one that works is chosen, which blocks for some tenths of a second once in a
    process.

    Raises:
        SandboxError: ``tree`` is not a folder, or no engine works; the message has the fix.
        ToolMissing: a tool is not a program.
    """
    if not tree.is_dir():
        raise SandboxError(f"{tree} is not a folder: nothing to open a shell on")
    found = {name: path.resolve() for name, path in tools.items()}
    for name, path in found.items():
        if "/" in name or not path.is_file() or not os.access(path, os.X_OK):
            raise ToolMissing(f"the tool {name!r} of the sandbox is not a program: {path}")
    return ReadOnlyShell(tree.resolve(), engine or choose_engine(), MappingProxyType(found))
