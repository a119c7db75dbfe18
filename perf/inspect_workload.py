"""The workload of jobs.py for Inspect: samples with its mock model, or samples that wait one second.

usage: inspect_workload.py trivial|wait COUNT PERMITS FOLDER      (run by the peer's own Python)
"""

from __future__ import annotations

import sys

import anyio
from inspect_ai import Task, eval  # noqa: A004 - its name
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate, solver


@solver
def wait():  # noqa: ANN201 - as its documentation has it
    async def solve(state, _generate):  # noqa: ANN001, ANN202
        await anyio.sleep(1)
        return state

    return solve


def outputs():  # noqa: ANN201
    while True:
        output = ModelOutput.from_content("mockllm/model", "done")
        output.usage = ModelUsage(input_tokens=10, output_tokens=1, total_tokens=11)
        yield output


def main(kind: str, count: str, permits: str, folder: str) -> None:
    task = Task(
        dataset=[Sample(input=f"job {number}", target="done") for number in range(int(count))],
        solver=[wait() if kind == "wait" else generate()],
    )
    (log,) = eval(
        task,
        model=get_model("mockllm/model", custom_outputs=outputs()),
        display="none",
        log_dir=folder,
        max_samples=int(permits),
        max_connections=int(permits),
        score=False,
    )
    assert log.status == "success", log.error
    assert log.results is None or log.results.completed_samples == int(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
