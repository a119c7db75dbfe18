"""A coding agent's tools in a real sandbox, called from tests that are not coroutines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from codetaste.agent.code_tools import CodeContext, bash, edit
from codetaste.agent.facts import Facts
from codetaste.agent.tool import Tool
from codetaste.sandbox.base import CommandLimits, CommandResult, Sandbox, SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider


@dataclass(frozen=True)
class ToolSession:
    sandbox: Sandbox
    portal: BlockingPortal
    context: CodeContext

    def call(self, tool: Tool, **arguments: Any) -> str:
        async def call() -> str:
            return (await tool.call(self.context, arguments)).text

        return self.portal.call(call)

    def edit(self, path: str, old: str, new: str, **more: Any) -> str:
        return self.call(edit, path=path, old=old, new=new, **more)

    def bash(self, command: str, **more: Any) -> str:
        return self.call(bash, command=command, **more)

    def write_file(self, path: str, content: bytes) -> None:
        """Create a file without the tools, which might refuse it."""
        assert self.run_shell('mkdir -p "$(dirname "$0")" && cat >"$0"', path, stdin=content).exit_code == 0

    def read_file(self, path: str) -> bytes:
        result = self.run_shell('cat "$0"', path)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    def run_shell(self, script: str, *arguments: str, stdin: bytes = b"") -> CommandResult:
        async def run() -> CommandResult:
            limits = CommandLimits(output_bytes=16 * 1024**2)
            return await self.sandbox.run(["/bin/sh", "-c", script, *arguments], limits=limits, stdin=stdin)

        return self.portal.call(run)


@contextlib.contextmanager
def open_tool_session(folder: Path) -> Iterator[ToolSession]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(bubblewrap_provider(folder).open(SandboxSpec("tools"))) as sandbox,
    ):
        yield ToolSession(sandbox, portal, CodeContext(sandbox, Facts(), output_bytes=4096))
