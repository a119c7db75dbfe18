"""A process that runs commands in codetaste's shell, which tests attack from inside.

Tests start it as root and as an ordinary user. Each input line is a JSON request, each output line its reply.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio

from codetaste.errors import CodetasteError
from codetaste.sandbox.base import CommandLimits
from codetaste.sandbox.containment import bubblewrap
from codetaste.sandbox.containment.engine import ContainmentEngine, choose_engine, probe_engines
from codetaste.sandbox.local.shell import ReadOnlyShell, read_only_shell

SECRET = os.environ.get("ANTHROPIC_API_KEY", "")


def select_engine(name: str) -> ContainmentEngine:
    if name == "oldest-bubblewrap":
        return ContainmentEngine("bubblewrap", bubblewrap.find_programs()[-1].path)
    if name == "landlock-1":  # the version of the first kernels with Landlock, which later ones accept
        return ContainmentEngine("landlock", landlock_abi=1)
    return choose_engine(name)


async def run_request(shell: ReadOnlyShell, request: dict[str, Any]) -> dict[str, Any]:
    limits = CommandLimits(**request.get("limits", {}))
    with anyio.move_on_after(request.get("cancel_after", 1000)):
        result = await shell.run(
            request["command"],
            limits=limits,
            stdin=base64.b64decode(request.get("stdin", "")),
            env=request.get("env"),
        )
        return {
            "exit_code": result.exit_code,
            "stdout": base64.b64encode(result.stdout).decode(),
            "stderr": base64.b64encode(result.stderr).decode(),
            "truncated": result.truncated,
            "timed_out": result.timed_out,
            "wall_s": result.wall_s,
        }
    return {"cancelled": True}


async def read_lines() -> AsyncIterator[str]:
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        yield line


async def main() -> None:
    settings = json.loads(sys.argv[1])
    tools = {name: Path(path) for name, path in settings["tools"].items()}
    secret_fd = os.open(settings["secret_file"], os.O_RDONLY)
    os.set_inheritable(secret_fd, True)  # noqa: FBT003
    shell = read_only_shell(Path(settings["tree"]), tools=tools, engine=select_engine(settings["engine"]))
    greeting = {"kind": shell.kind, "workdir": shell.workdir, "pid": os.getpid(), "secret": len(SECRET)}
    print(json.dumps(greeting), flush=True)  # noqa: T201
    async for line in read_lines():
        request = json.loads(line)
        try:
            reply = await run_request(shell, request)
        except CodetasteError as fault:
            reply = {"error": f"{type(fault).__name__}: {fault}"}
        reply["open"] = len([entry async for entry in anyio.Path("/proc/self/fd").iterdir()])
        print(json.dumps(reply), flush=True)  # noqa: T201


def report_engines() -> None:
    probes = [[probe.kind, probe.works, probe.problem, probe.fix] for probe in probe_engines()]
    try:
        choice = choose_engine("auto").kind
    except CodetasteError as fault:
        choice = f"{type(fault).__name__}: {fault}"
    print(json.dumps({"probes": probes, "choice": choice}), flush=True)  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1] == "probe":
        report_engines()
    else:
        anyio.run(main)
