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

VERSION = 2
"""Increment it when a change of this room changes a study that the same prompts and trials would give."""
SYSTEM_PROMPT = "case_study/system"
_PROMPTS = {StudyKind.COMPARISON: "case_study/compare", StudyKind.LABELS: "case_study/label"}
_METHOD_PROMPTS = {
    StudyKind.COMPARISON: "case_study/compare_methods",
    StudyKind.LABELS: "case_study/label_method",
}
AGAIN_PROMPT = "case_study/again"


def prompt_of(task: StudyTask) -> str:
    """Return the name of the prompt of a study."""
    return (_PROMPTS if task.subject.method is None else _METHOD_PROMPTS)[task.kind]


def study_inputs(
    task: StudyTask, source: InputSource, sandbox: SandboxConfig, adapters: Mapping[str, Adapter]
) -> Inputs:
    """Return the inputs of a study; ``adapters`` are those of CLI agents, by agent id."""
    inputs = {**agent_inputs(task.agent, adapters, source), **sandbox_inputs(sandbox)}
    return {
        **inputs,
        **source.of_prompts((SYSTEM_PROMPT, prompt_of(task), AGAIN_PROMPT)),
        CODETASTE: canonical_json([VERSION, task.kind, inputs.get(CODETASTE, "")]),
        "benchmark.path": canonical_json(list(task.subject.commits)),
        "case_study.run": canonical_json([[each.name, each.digest] for each in task.trials]),
        f"models.{task.agent.model}": source.models[task.agent.model],
    }
