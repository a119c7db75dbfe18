"""What is told of a trial beside its patch, in the published layout (DESIGN §6)."""

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
    from collections.abc import Iterable, Mapping

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Trial
    from codetaste.harness.harvest import Harvest
    from codetaste.orchestration.money import Snapshot


def agent_config(trial: Trial, site: Site) -> dict[str, Any]:
    """Return what is told of the agent, as the published harness tells it."""
    agent, model = trial.agent, site.settings[trial.agent.model]
    limits = {"budget_usd": exact_usd(agent.budget_usd), "time_limit_s": agent.time_limit}
    return {
        "id": agent.id,
        "agent": {
            "name": agent.harness if agent.own else site.adapters[agent.id].name,
            "version": site.version(agent),
            "provider": "codetaste" if agent.own else site.adapters[agent.id].protocol,
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
        reason: its finish reason.
        finished: when, ISO 8601.
        message: the agent's last words, or why it ended.
        taken: the patch.
        interrupted: why this is no outcome, but only what there is so far.
    """

    reason: str
    finished: str
    message: str = ""
    taken: Harvest | None = None
    interrupted: str = ""


def inference_metadata(
    trial: Trial, site: Site, steps: Mapping[str, Any], money: Snapshot, ending: Ending
) -> dict[str, Any]:
    """Return what is told of a trial; ``steps`` is what each step that was made tells of itself, by name.

    ``cost_usd`` is what its calls were measured to cost, all steps together; calls whose cost nobody knows
    count as much as was reserved for them.
    """
    taken = ending.taken
    return {
        "cost_usd": float(money.settled.usd + money.unknown.usd),
        "finish_reason": ending.reason,
        "start_time": _begun(steps.values()) or ending.finished,
        "finish_time": ending.finished,
        "description_type": str(trial.track.track),
        "mode": trial.track.mode,
        "additional": {
            **_totals(steps.values()),
            "settled_usd": exact_usd(money.settled.usd),
            "unknown_usd": exact_usd(money.unknown.usd),
            "attempt": trial.attempt,
            "harness": trial.agent.harness,
            "harness_version": site.version(trial.agent),
            "codetaste_version": __version__,
            "box": site.boxes.kind,
            "image": site.sandbox.image,
            "patch_bytes": len(taken.patch) if taken else 0,
            "patch_files": taken.files if taken else 0,
            "patch_problem": taken.problem if taken else "",
            "patch_notes": list(taken.notes) if taken else [],
            "selected_plan": steps.get(StepKind.JUDGE, {}).get("selected"),
            "steps": dict(steps),
            **({"message": ending.message} if ending.message else {}),
            **({"interrupted": ending.interrupted} if ending.interrupted else {}),
        },
    }


def without_plans(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a step tells of itself but for the texts that it left, which have files of their own."""
    told = {name: item for name, item in value.items() if name != "plans"}
    if "goes" in told:
        told["goes"] = [without_plans(go) for go in told["goes"]]
    return told


def _goes(steps: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Give what was done one after the other: a step of several goes tells of each."""
    return [go for step in steps for go in step.get("goes", [step])]


def _begun(steps: Iterable[Mapping[str, Any]]) -> str:
    return next((str(go["start_time"]) for go in _goes(steps)), "")


def _totals(steps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    goes = _goes(steps)
    usage = total(usage_from_json(go["tokens"]) or Usage() for go in goes)
    return {
        "turns": sum(go.get("turns", 0) for go in goes),
        "tool_calls": sum(go.get("tool_calls", 0) for go in goes),
        "tokens": usage_to_json(usage),
    }
