"""The inputs that decide a study: its trials, the prompts, the agent and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.case_study.config import StudyKind
from codetaste.core.hashing import canonical_json
from codetaste.flows.agents.inputs import agent_inputs, sandbox_inputs
from codetaste.flows.inputs import CODETASTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.case_study.plan import StudyTask
    from codetaste.flows.inputs import Inputs, InputSource
    from codetaste.harness.adapter import Adapter
    from codetaste.sandbox.config import SandboxConfig

VERSION = 1
"""Increment it when a change of this room changes a study that the same prompts and trials would give."""
SYSTEM_PROMPT = "case_study/system"
PROMPTS = {StudyKind.COMPARISON: "case_study/compare", StudyKind.LABELS: "case_study/label"}
AGAIN_PROMPT = "case_study/again"


def study_inputs(
    task: StudyTask, source: InputSource, sandbox: SandboxConfig, adapters: Mapping[str, Adapter]
) -> Inputs:
    """Return the inputs of a study; ``adapters`` are those of CLI agents, by agent id."""
    inputs = {**agent_inputs(task.agent, adapters, source), **sandbox_inputs(sandbox)}
    instance = task.instance
    return {
        **inputs,
        **source.of_prompts((SYSTEM_PROMPT, PROMPTS[task.kind], AGAIN_PROMPT)),
        CODETASTE: canonical_json([VERSION, task.kind, inputs.get(CODETASTE, "")]),
        "benchmark.path": canonical_json([instance.commit_hash, instance.golden_commit_hash]),
        "case_study.run": canonical_json([[each.name, each.digest] for each in task.trials]),
        f"models.{task.agent.model}": source.models[task.agent.model],
    }
