"""The fingerprint of a trial's step: a digest of all that decides its result.

The results of earlier steps count too, an execute step's plan among them; the scheduler adds those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.flows.infer.judge import repeated_question
from codetaste.flows.infer.plan import PLAN_COUNT
from codetaste.flows.sources import digest_parts

if TYPE_CHECKING:
    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.llm.messages import Request

VERSION = 1
"""Increment it when a change of the flow changes the result of a step with the same prompts and tools."""


def agent_step_fingerprint(step: Step, context: InferenceContext, task: str) -> str:
    """Return the fingerprint of a plan or execute step whose agent gets the prompt ``task``."""
    return _digest(
        step,
        context,
        context.agents.sandbox_fingerprint,
        str(step.trial.attempt),
        task,
        *context.runner(step.trial.agent).fingerprint(task),
    )


def judge_fingerprint(step: Step, context: InferenceContext, opening: Request) -> str:
    """Return the fingerprint of a judge step that begins with the request ``opening``."""
    texts = (opening.messages[0].text, repeated_question(PLAN_COUNT, context))
    return _digest(step, context, *texts, str(opening.max_output_tokens))


def _digest(step: Step, context: InferenceContext, *inputs: str) -> str:
    model = context.models.fingerprints[step.model_id]
    return digest_parts(str(VERSION), step.trial.instance.commit_hash, step.kind, model, *inputs)
