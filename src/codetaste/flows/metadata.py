"""The metadata files beside a trial's patch, in the published layout (DESIGN §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.flows.effort import total
from codetaste.flows.trials import StepKind
from codetaste.llm.codec import usage_from_json, usage_to_json
from codetaste.llm.messages import Usage
from codetaste.units import exact_usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Trial
    from codetaste.harness.harvest import Harvest
    from codetaste.orchestration.money import Snapshot


def agent_config(trial: Trial, context: Site) -> dict[str, Any]:
    """Return ``agent_config.json`` in the format of the published harness."""
    agent, model = trial.agent, context.settings[trial.agent.model]
    limits = {"budget_usd": exact_usd(agent.budget_usd), "time_limit_s": agent.time_limit}
    return {
        "id": agent.id,
        "agent": {
            "name": agent.harness if agent.own else context.adapters[agent.id].name,
            "version": context.version(agent),
            "provider": "codetaste" if agent.own else context.adapters[agent.id].protocol,
            "additional": {**limits, "max_turns": agent.max_turns, "options": agent.options},
        },
        "model": {
            "name": model.model,
            "provider": model.provider,
            "additional": {"id": model.id, "options": model.options},
        },
    }


@dataclass(frozen=True, slots=True)
class Ending:
    """How a trial ended.

    Attributes:
        finish_reason: one of the finish reasons in ``flows/agents/result.py``.
        finished_at: when it ended, ISO 8601.
        message: the agent's last message, or why it ended.
        patch: the extracted patch; None where no agent ran.
        interruption: why this is a partial prediction and not an outcome; "" for an outcome.
    """

    reason: str
    finished: str
    message: str = ""
    taken: Harvest | None = None
    interrupted: str = ""


def inference_metadata(
    trial: Trial, context: Site, steps: Mapping[str, Any], money: Snapshot, end: Ending
) -> dict[str, Any]:
    """Return ``inference_metadata.json`` of a trial; ``steps`` has the results of its finished steps by name.

    ``cost_usd`` is the measured cost of the calls of all steps together; a call of unknown cost counts with
    the amount that was reserved for it.
    """
    patch = end.taken
    # A plan step has one agent run for each of its attempts.
    attempts = [attempt for step in steps.values() for attempt in step.get("goes", [step])]
    usage = total(usage_from_json(attempt["tokens"]) or Usage() for attempt in attempts)
    return {
        "cost_usd": float(money.settled.usd + money.unknown.usd),
        "finish_reason": end.reason,
        "start_time": (str(attempts[0]["start_time"]) if attempts else "") or end.finished,
        "finish_time": end.finished,
        "description_type": str(trial.track.track),
        "mode": trial.track.mode,
        "additional": {
            "turns": sum(attempt.get("turns", 0) for attempt in attempts),
            "tool_calls": sum(attempt.get("tool_calls", 0) for attempt in attempts),
            "tokens": usage_to_json(usage),
            "settled_usd": exact_usd(money.settled.usd),
            "unknown_usd": exact_usd(money.unknown.usd),
            "attempt": trial.attempt,
            "harness": trial.agent.harness,
            "harness_version": context.version(trial.agent),
            "codetaste_version": __version__,
            "box": context.boxes.kind,
            "image": context.sandbox.image,
            "patch_bytes": len(patch.patch) if patch else 0,
            "patch_files": patch.files if patch else 0,
            "patch_problem": patch.problem if patch else "",
            "patch_notes": list(patch.notes) if patch else [],
            "selected_plan": steps.get(StepKind.JUDGE, {}).get("selected"),
            "steps": dict(steps),
            **({"message": end.message} if end.message else {}),
            **({"interrupted": end.interrupted} if end.interrupted else {}),
        },
    }


def without_plans(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step's value without the digests of its plans, which have their own files."""
    data = {name: item for name, item in value.items() if name != "plans"}
    if "goes" in data:
        data["goes"] = [without_plans(attempt) for attempt in data["goes"]]
    return data
