"""A new run of the engine starts without what only a run with earlier sessions needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path

import anyio

from codetaste.orchestration.job import Job
from codetaste.orchestration.session import open_session


async def answer(job, context):
    return "done"


async def run(folder):
    async with open_session(folder) as session:
        session.add_handlers({"answer": answer})
        return await session.run([Job("a", "answer", (), "fingerprint")])


outcome = anyio.run(run, Path(sys.argv[1]))["a"]
print(outcome.value, outcome.resumed, "pydantic" in sys.modules)
"""


def test_only_a_run_with_earlier_lines_imports_what_checks_them(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run")]
    new, resumed = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)
    )
    assert new == ["done", "False", "False"]
    assert resumed == ["done", "True", "True"]
