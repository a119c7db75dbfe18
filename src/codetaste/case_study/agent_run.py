"""``StudyRun``: an agent in a sandbox with the artefacts of trials; its output is a report.

Mounted read-only are the artefacts and both trees; /testbed has R as a repository, to try patches in. The
only way out of the sandbox is the one to the agent's model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from codetaste.case_study.reply import MAX_REPORT_BYTES, REPORT_FILE
from codetaste.flows.agents.output_files import read_output_files
from codetaste.flows.agents.run import AgentRun
from codetaste.sandbox.base import Mount

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.flows.agents.run import SandboxNeeds
    from codetaste.sandbox.base import SandboxSpec
    from codetaste.source.checkout import Trees

STUDY, BASE, GOLDEN_TREE = "/opt/study", "/opt/base", "/opt/golden"
"""Where a sandbox has the artefacts, R, and R∘X*."""


@dataclass(slots=True)
class StudyRun(AgentRun):
    """One run of an agent on a study.

    Attributes:
        material: the folder of the host with the artefacts.
        trees: R and R∘X* on the host.
        text: what the agent wrote, "" if it wrote no report.
        problem: why there is no report.
    """

    material: Path = field(kw_only=True)
    trees: Trees = field(kw_only=True)
    text: str = field(default="", init=False)
    problem: str = field(default="the agent wrote no report", init=False)

    def sandbox_spec(self, needs: SandboxNeeds) -> SandboxSpec:
        """Return the sandbox: with the artefacts and both trees."""
        spec = super(StudyRun, self).sandbox_spec(needs)
        own = (
            Mount(self.material, STUDY),
            Mount(self.trees.base, BASE),
            Mount(self.trees.golden, GOLDEN_TREE),
        )
        return replace(spec, mounts=(*spec.mounts, *own))

    async def extract(self) -> None:
        """Read the report."""
        files = await read_output_files(self.sandbox, (REPORT_FILE,), MAX_REPORT_BYTES, self.token)
        self.text = files.texts.get(REPORT_FILE, "")
        self.problem = "" if self.text else files.describe_problem(REPORT_FILE)
