"""Read the plans that an agent wrote in its sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import PLAN_FILE, PLAN_FILES, Mode
from codetaste.flows.agents.output_files import read_output_files
from codetaste.flows.infer.plan import PLAN_COUNT

if TYPE_CHECKING:
    from codetaste.flows.agents.output_files import OutputFiles
    from codetaste.sandbox.base import Sandbox

MAX_PLAN_BYTES = 256 * 1024
"""Longer plans are rejected, because a plan becomes part of a prompt."""


@dataclass(frozen=True, slots=True)
class AgentPlans:
    """The texts of all requested plans in their order; empty where there is a ``problem``."""

    texts: tuple[str, ...] = ()
    problem: str = ""


async def read_plans(sandbox: Sandbox, mode: Mode, token: bytes) -> AgentPlans:
    """Read the plans for ``mode``, not "direct"; also works on a stopped sandbox.

    A file that is not a regular file, too long or blank counts as missing. Bytes that are not valid UTF-8,
    and ``token``, are replaced.

    Raises:
        SandboxError: the sandbox cannot be read.
    """
    wanted = (PLAN_FILE,) if mode is Mode.PLAN else PLAN_FILES
    files = await read_output_files(sandbox, wanted, MAX_PLAN_BYTES, token)
    if problem := _problem(wanted, files):
        return AgentPlans(problem=problem)
    return AgentPlans(tuple(files.texts[name] for name in wanted))


def _problem(wanted: tuple[str, ...], files: OutputFiles) -> str:
    """Describe the problem with the first missing plan, and name the plan files that were found."""
    missing = [name for name in wanted if name not in files.texts]
    if not missing:
        return ""
    others = sorted(
        name for name in {*files.texts, *files.problems} if name not in missing and _is_plan(name)
    )
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    found = f" (found: {', '.join(others[: 2 * PLAN_COUNT])})" if others else ""
    return f"{files.describe_problem(missing[0])}{more}{found}"


def _is_plan(name: str) -> bool:
    return name.startswith("refactoring_plan") and name.endswith(".md")
