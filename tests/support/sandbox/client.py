"""A process like codetaste's own, for tests to attack from inside its sandbox.

Started by tests as root and as an ordinary user, each line of JSON a request, each answered by a line of
JSON.
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


def chosen(name: str) -> ContainmentEngine:
    if name == "package":
        program = next(path for origin, path in bubblewrap.find_programs() if origin == "package")
        return ContainmentEngine("bubblewrap", program)
    if name == "landlock-1":  # as the first kernels had it: this one accepts being asked for less
        return ContainmentEngine("landlock", landlock_abi=1)
    return choose_engine(name)


async def answer(sandbox: ReadOnlyShell, request: dict[str, Any]) -> dict[str, Any]:
    limits = CommandLimits(**request.get("limits", {}))
    with anyio.move_on_after(request.get("cancel_after", 1000)):
        done = await sandbox.run(
            request["command"],
            limits=limits,
            stdin=base64.b64decode(request.get("stdin", "")),
            env=request.get("env"),
        )
        return {
            "exit_code": done.exit_code,
            "stdout": base64.b64encode(done.stdout).decode(),
            "stderr": base64.b64encode(done.stderr).decode(),
            "truncated": done.truncated,
            "timed_out": done.timed_out,
            "wall_s": done.wall_s,
        }
    return {"cancelled": True}


async def lines() -> AsyncIterator[str]:
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        yield line


async def main() -> None:
    setting = json.loads(sys.argv[1])
    tools = {name: Path(path) for name, path in setting["tools"].items()}
    kept_open = os.open(setting["secret_file"], os.O_RDONLY)
    os.set_inheritable(kept_open, True)  # noqa: FBT003
    sandbox = read_only_shell(Path(setting["tree"]), tools=tools, engine=chosen(setting["engine"]))
    hello = {"kind": sandbox.kind, "workdir": sandbox.workdir, "pid": os.getpid(), "secret": len(SECRET)}
    print(json.dumps(hello), flush=True)  # noqa: T201
    async for line in lines():
        request = json.loads(line)
        try:
            reply = await answer(sandbox, request)
        except CodetasteError as fault:
            reply = {"error": f"{type(fault).__name__}: {fault}"}
        reply["open"] = len([one async for one in anyio.Path("/proc/self/fd").iterdir()])
        print(json.dumps(reply), flush=True)  # noqa: T201


def report() -> None:
    found = [[one.kind, one.works, one.problem, one.fix] for one in probe_engines()]
    try:
        choice = choose_engine("auto").kind
    except CodetasteError as fault:
        choice = f"{type(fault).__name__}: {fault}"
    print(json.dumps({"found": found, "choice": choice}), flush=True)  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1] == "probe":
        report()
    else:
        anyio.run(main)
