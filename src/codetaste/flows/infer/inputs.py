"""The inputs that decide the result of a trial's step.

The results of earlier steps count too, an execute step's plan among them; the scheduler adds those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import Mode, Track
from codetaste.benchmark.trial_identity import StepKind
from codetaste.core.hashing import canonical_json
from codetaste.flows.agents.inputs import agent_inputs, sandbox_inputs
from codetaste.flows.inputs import CODETASTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.infer.plan import Step
    from codetaste.flows.inputs import Inputs, InputSource
    from codetaste.harness.adapter import Adapter
    from codetaste.sandbox.config import SandboxConfig

VERSION = 1
"""Increment it when a change of the flow changes the result of a step with the same prompts and tools."""
PLANNING_PROMPTS = {Mode.PLAN: "plan", Mode.MULTIPLAN: "multiplan"}
DIRECT_PROMPT, PLANNED_PROMPT = "infer", "execute_plan"
JUDGE_PROMPTS = ("judge", "judge_again")


def step_inputs(
    step: Step, source: InputSource, sandbox: SandboxConfig, adapters: Mapping[str, Adapter]
) -> Inputs:
    """Return the inputs of a step; ``adapters`` are those of CLI agents, by agent id."""
    trial, judging = step.trial, step.kind is StepKind.JUDGE
    inputs: dict[str, str] = {}
    prompts: tuple[str, ...] = JUDGE_PROMPTS
    if not judging:
        prompts = (_prompt(step),)
        inputs.update(agent_inputs(trial.agent, adapters, source))
        inputs.update(sandbox_inputs(sandbox))
    # The judge always gets the whole description.
    track = Track.INSTRUCTED if judging else trial.track.track
    own = [VERSION, step.kind, 0 if judging else trial.attempt, inputs.get(CODETASTE, "")]
    if judging:
        inputs["tracks.judge_max_output_tokens"] = str(trial.track.judge_max_output_tokens)
    facts = [trial.instance.commit_hash]
    if PLANNED_PROMPT not in prompts:
        facts.append(source.benchmark.known_description(trial.instance, track))
    return {
        **inputs,
        **source.of_prompts(prompts),
        CODETASTE: canonical_json(own),
        "benchmark.path": canonical_json(facts),
        f"models.{step.model_id}": source.models[step.model_id],
    }


def _prompt(step: Step) -> str:
    if step.kind is StepKind.PLAN:
        return PLANNING_PROMPTS[step.trial.track.mode]
    return DIRECT_PROMPT if step.trial.track.mode is Mode.DIRECT else PLANNED_PROMPT
