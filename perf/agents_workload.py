"""What perf/agents.py times: a run of a config in this very process, whose memory and CPU are its own alone.

agents_workload.py CONFIG TOLD        the config, as `codetaste run` has it; TOLD gets the figures as JSON
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
    """Let a file be edited with each reply but the last, and take time over each."""
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn >= _CALLS:
        return ScriptedReply("All is done.", latency_s=_WAIT_S)
    command = f"echo '# edit {turn}' >>pack0/module{turn}.py; echo 'made = {turn}' >pack0/made{turn}.py"
    call = ToolCall(f"call-{turn}", "bash", {"command": command})
    return ScriptedReply(Message("assistant", (TextBlock(f"step {turn}"), call)).content, latency_s=_WAIT_S)


def main() -> None:
    from codetaste.run.__main__ import run  # noqa: PLC0415 - the scripts are loaded by the measured process, too

    config, told = sys.argv[1:]
    code = run(Path(config), json_=True)
    own, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    status = Path("/proc/self/status").read_text()
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    figures = {
        "code": code,
        "rss": peak_kb * 1024,
        "cpu_s": own.ru_utime + own.ru_stime,
        "children_cpu_s": below.ru_utime + below.ru_stime,
    }
    Path(told).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
