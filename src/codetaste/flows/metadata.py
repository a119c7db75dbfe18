"""The metadata files beside a trial's patch, in the published layout (DESIGN §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.flows.effort import sum_usage
from codetaste.flows.trials import StepKind
from codetaste.llm.codec import usage_from_json, usage_to_json
from codetaste.llm.messages import Usage
from codetaste.units import format_exact_usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.site import InferenceContext
    from codetaste.flows.trials import Trial
    from codetaste.harness.harvest import ExtractedPatch
    from codetaste.orchestration.money import BudgetSnapshot


def agent_config(trial: Trial, context: InferenceContext) -> dict[str, Any]:
    """Return ``agent_config.json`` in the format of the published harness."""
    agent, model = trial.agent, context.model_configs[trial.agent.model]
    limits = {"budget_usd": format_exact_usd(agent.budget_usd), "time_limit_s": agent.time_limit}
    return {
        "id": agent.id,
        "agent": {
            "name": agent.harness if agent.uses_own_loop else context.adapters[agent.id].name,
            "version": context.version(agent),
            "provider": "codetaste" if agent.uses_own_loop else context.adapters[agent.id].protocol,
            "additional": {**limits, "max_turns": agent.max_turns, "options": agent.options},
        },
        "model": {
            "name": model.model,
            "provider": model.provider,
            "additional": {"id": model.id, "options": model.options},
        },
    }


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended.

    Attributes:
        finish_reason: one of the finish reasons in ``flows/agents/result.py``.
        finished_at: when it ended, ISO 8601.
        message: the agent's last message, or why it ended.
        patch: the extracted patch; None where no agent ran.
        interruption: why this is a partial prediction and not an outcome; "" for an outcome.
    """

    finish_reason: str
    finished_at: str
    message: str = ""
    patch: ExtractedPatch | None = None
    interruption: str = ""


def inference_metadata(
    trial: Trial, context: InferenceContext, steps: Mapping[str, Any], money: BudgetSnapshot, end: TrialEnd
) -> dict[str, Any]:
    """Return ``inference_metadata.json`` of a trial; ``steps`` has the results of its finished steps by name.

    ``cost_usd`` is the measured cost of the calls of all steps together; a call of unknown cost counts with
    the amount that was reserved for it.
    """
    patch = end.patch
    # A plan step has one agent run for each of its attempts.
    attempts = [attempt for step in steps.values() for attempt in step.get("goes", [step])]
    usage = sum_usage(usage_from_json(attempt["tokens"]) or Usage() for attempt in attempts)
    return {
        "cost_usd": float(money.settled.usd + money.unknown.usd),
        "finish_reason": end.finish_reason,
        "start_time": (str(attempts[0]["start_time"]) if attempts else "") or end.finished_at,
        "finish_time": end.finished_at,
        "description_type": str(trial.track.track),
        "mode": trial.track.mode,
        "additional": {
            "turns": sum(attempt.get("turns", 0) for attempt in attempts),
            "tool_calls": sum(attempt.get("tool_calls", 0) for attempt in attempts),
            "tokens": usage_to_json(usage),
            "settled_usd": format_exact_usd(money.settled.usd),
            "unknown_usd": format_exact_usd(money.unknown.usd),
            "attempt": trial.attempt,
            "harness": trial.agent.harness,
            "harness_version": context.version(trial.agent),
            "codetaste_version": __version__,
            "box": context.sandboxes.kind,
            "image": context.sandbox_config.image,
            "patch_bytes": len(patch.patch) if patch else 0,
            "patch_files": patch.files if patch else 0,
            "patch_problem": patch.problem if patch else "",
            "patch_notes": list(patch.notes) if patch else [],
            "selected_plan": steps.get(StepKind.JUDGE, {}).get("selected"),
            "steps": dict(steps),
            **({"message": end.message} if end.message else {}),
            **({"interrupted": end.interruption} if end.interruption else {}),
        },
    }


def without_plans(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step's value without the digests of its plans, which have their own files."""
    data = {name: item for name, item in value.items() if name != "plans"}
    if "goes" in data:
        data["goes"] = [without_plans(attempt) for attempt in data["goes"]]
    return data
