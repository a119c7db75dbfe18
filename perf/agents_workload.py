"""The workload of agents.py: a run of a config in this process, whose memory and CPU are measured.

Usage: agents_workload.py CONFIG FIGURES: runs CONFIG as `codetaste run` does and writes JSON to FIGURES.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.llm.messages import Message, TextBlock, ToolCall
from codetaste.llm.providers.scripted import ScriptedReply

if TYPE_CHECKING:
    from codetaste.llm.messages import Request

_CALLS = int(os.environ.get("PERF_AGENT_CALLS", "8"))
_WAIT_S = float(os.environ.get("PERF_AGENT_WAIT_S", "1"))


def patient(request: Request) -> ScriptedReply:
    """Edit files with each reply but the last, and take time over each."""
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn >= _CALLS:
        return ScriptedReply("All is done.", latency_s=_WAIT_S)
    command = f"echo '# edit {turn}' >>pack0/module{turn}.py; echo 'made = {turn}' >pack0/made{turn}.py"
    call = ToolCall(f"call-{turn}", "bash", {"command": command})
    return ScriptedReply(Message("assistant", (TextBlock(f"step {turn}"), call)).content, latency_s=_WAIT_S)


def main() -> None:
    from codetaste.run.__main__ import run  # noqa: PLC0415 - the run also loads this file, as its script

    config, output = sys.argv[1:]
    code = run(Path(config), json_=True)
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    status = Path("/proc/self/status").read_text()
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    figures = {
        "code": code,
        "rss": peak_kb * 1024,
        "cpu_s": own.ru_utime + own.ru_stime,
        "children_cpu_s": children.ru_utime + children.ru_stime,
    }
    Path(output).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
