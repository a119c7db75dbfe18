"""The metadata files beside a trial's patch, in the published layout."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste import __version__
from codetaste.benchmark.layout import (
    AGENT_CONFIG_FILE,
    EXECUTION_LOG_FILE,
    JUDGE_METADATA_FILE,
    JUDGE_OUTPUT_FILE,
    METADATA_FILE,
    OUTPUTS_FOLDER,
    PLAN_FILE,
    PLAN_FILES,
    PLAN_LOG_FILES,
    PLAN_METADATA_FILES,
    PREDICTION_FILE,
    FinishReason,
    Mode,
    trial_folder,
)
from codetaste.benchmark.trial_identity import StepKind
from codetaste.core.files import link_file, read_regular_file, storage_error, write_atomically
from codetaste.core.units import format_exact_usd
from codetaste.errors import JournalError
from codetaste.flows.infer.results import AgentStep, ExecuteResult, JudgeResult, unmetered_usd
from codetaste.harness.patch.extract import ExtractedPatch
from codetaste.llm.codec import usage_from_json, usage_to_json
from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Trial
    from codetaste.flows.infer.results import StepMetadata
    from codetaste.orchestration.budget.cost import BudgetSnapshot
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.blobs import Blobs


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended.

    Attributes:
        finish_reason: one of the published finish reasons.
        finished_at: when it ended, ISO 8601.
        message: the agent's last message, or why it ended.
        patch: the extracted patch; None where no agent ran.
        interruption: why this is a partial prediction and not an outcome; "" for an outcome.
        image: of the sandbox, "" for the engine's default.
    """

    finish_reason: FinishReason
    finished_at: str
    message: str = ""
    patch: ExtractedPatch | None = None
    interruption: str = ""
    image: str = ""


def inference_metadata(
    trial: Trial,
    context: InferenceContext,
    steps: Mapping[str, StepMetadata],
    money: BudgetSnapshot,
    end: TrialEnd,
) -> dict[str, Any]:
    """Return ``inference_metadata.json`` of a trial; ``steps`` has the results of its finished steps by name.

    As published, ``cost_usd`` and the times are those of the execute step: the other steps have files of
    their own. ``trial_usd`` is the measured cost of the calls of all steps together; a call of unknown cost
    counts with the amount that was reserved for it. A run whose calls codetaste does not serve counts with
    the cost that the agent reports; ``unmetered_usd`` is the sum of these.
    """
    patch = end.patch or ExtractedPatch(b"", 0, "")
    runs = [run for step in steps.values() for run in step.runs]
    usages = [None] if money.unknown.tokens else [usage_from_json(run["tokens"]) for run in runs]
    known = [each for each in usages if each is not None]
    usage = sum(known, Usage()) if len(known) == len(usages) else None
    refusals = sum(run.get("refusals", 0) for run in runs)
    unmetered = unmetered_usd(runs)
    trial_usd = money.settled.usd + money.unknown.usd + unmetered
    earlier_usd = sum((step.usd for step in steps.values() if not isinstance(step, AgentStep)), Decimal())
    executed, judged = steps.get(StepKind.EXECUTE), steps.get(StepKind.JUDGE)
    return {
        "cost_usd": float(max(Decimal(), trial_usd - earlier_usd)),
        "finish_reason": end.finish_reason,
        "start_time": executed.runs[0]["start_time"] if executed else end.finished_at,
        "finish_time": end.finished_at,
        "description_type": str(trial.track.track),
        "mode": trial.track.mode,
        "additional": {
            "turns": sum(run.get("turns", 0) for run in runs),
            "tool_calls": sum(run.get("tool_calls", 0) for run in runs),
            "tokens": usage_to_json(usage),
            "trial_usd": format_exact_usd(trial_usd),
            "settled_usd": format_exact_usd(money.settled.usd),
            "unknown_usd": format_exact_usd(money.unknown.usd),
            **({"unmetered_usd": format_exact_usd(unmetered)} if unmetered else {}),
            "attempt": trial.attempt,
            "budgets": trial.track.budgets,
            "harness": trial.agent.harness,
            "harness_version": context.runner(trial.agent).version,
            "codetaste_version": __version__,
            "sandbox": context.agents.sandboxes.kind,
            "image": end.image,
            "patch_bytes": len(patch.patch),
            "patch_files": patch.files,
            "patch_problem": patch.problem,
            "patch_notes": list(patch.notes),
            "selected_plan": judged.selected if isinstance(judged, JudgeResult) else None,
            "steps": {name: step.metadata() for name, step in steps.items()},
            **({"refusals": refusals} if refusals else {}),
            **({"message": end.message} if end.message else {}),
            **({"interruption": end.interruption} if end.interruption else {}),
        },
    }


def output_folder(out: Path, trial: Trial) -> Path:
    """Return the folder of ``trial``'s prediction; attempts after the first have sub-folders of it."""
    track = trial.track
    return trial_folder(
        out / OUTPUTS_FOLDER, track.track, track.mode, trial.instance.path, trial.agent.id, trial.attempt
    )


@dataclass(frozen=True, slots=True)
class Prediction:
    """The content of all files of one trial.

    ``metadata`` is ``inference_metadata.json``, ``judgement`` the judge's answer, "" if there is none.
    """

    patch: bytes
    metadata: Mapping[str, Any]
    plans: Sequence[str] = ()
    judgement: str = ""

    async def store(self, job: JobContext) -> ExecuteResult:
        """Return the result with the digests of the long texts, which are stored in the journal's blobs."""
        patch = await job.store_text(self.patch.decode("utf-8", "surrogateescape"))
        return ExecuteResult(patch, tuple([await job.store_text(text) for text in self.plans]), self.metadata)


async def load_prediction(result: ExecuteResult, blobs: Blobs) -> Prediction:
    """Load the prediction that ``Prediction.store`` stored.

    Raises:
        JournalError: a text is missing or damaged.
    """
    patch = (await blobs.load(result.patch)).encode("utf-8", "surrogateescape")
    plans = [await blobs.load(digest) for digest in result.plans]
    answer = _steps_of(result.metadata).get(StepKind.JUDGE, {}).get("answer")
    return Prediction(patch, result.metadata, plans, await blobs.load(answer) if answer else "")


async def write_prediction(trial: Trial, prediction: Prediction, context: InferenceContext) -> None:
    """Write the files of ``trial``; a file that already has its content is not touched.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    names = (PLAN_FILE,) if len(prediction.plans) == 1 else PLAN_FILES
    files = {
        PREDICTION_FILE: prediction.patch,
        **{name: text.encode() for name, text in zip(names, prediction.plans, strict=False)},
        AGENT_CONFIG_FILE: _json(context.agent_config(trial.agent)),
        METADATA_FILE: _json(prediction.metadata),
        **_step_files(prediction),
    }
    logs = {name: context.out / path for name, path in _step_logs(prediction.metadata).items()}
    await to_thread.run_sync(_write, output_folder(context.out, trial), files, logs)


async def is_partial(out: Path, trial: Trial) -> bool:
    """Whether the files of ``trial`` are a partial prediction of an interrupted execute step."""
    metadata = await to_thread.run_sync(_read_metadata, output_folder(out, trial) / METADATA_FILE)
    return metadata is not None and "interruption" in metadata["additional"]


async def has_outcome(out: Path, trial: Trial) -> bool:
    """Whether the files of ``trial`` are an outcome or a partial prediction, not a record of a failure."""
    metadata = await to_thread.run_sync(_read_metadata, output_folder(out, trial) / METADATA_FILE)
    return metadata is not None and metadata["finish_reason"] != FinishReason.ERROR


def _read_metadata(path: Path) -> dict[str, Any] | None:
    try:
        metadata: dict[str, Any] = json.loads(read_regular_file(path))
        _ = metadata["finish_reason"], metadata["additional"].keys()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return metadata


def _steps_of(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the results of the steps; none where ``cost_usd`` was still that of all steps."""
    steps: Mapping[str, Any] = metadata["additional"]["steps"]
    return steps if "trial_usd" in metadata["additional"] else {}


def _step_files(prediction: Prediction) -> dict[str, bytes]:
    """Return the metadata of the plan step and of the judge, and the judge's answer, as published."""
    metadata, steps = prediction.metadata, _steps_of(prediction.metadata)
    if StepKind.PLAN not in steps:
        return {}
    planned = steps[StepKind.PLAN]
    attempts = planned["attempts"]
    plan = {
        "cost_usd": float(Decimal(planned["cost_usd"]) + unmetered_usd(attempts)),
        "finish_reason": planned["finish_reason"],
        "start_time": attempts[0]["start_time"],
        "finish_time": attempts[-1]["finish_time"],
        "description_type": metadata["description_type"],
        "mode": metadata["mode"],
        "additional": planned,
    }
    files = {PLAN_METADATA_FILES[Mode(metadata["mode"])]: _json(plan)}
    if StepKind.JUDGE in steps and prediction.plans:
        judged = steps[StepKind.JUDGE]
        usage = usage_from_json(judged["tokens"])
        began, ended = map(datetime.fromisoformat, (judged["start_time"], judged["finish_time"]))
        choice = {
            # As published from the beginning of the plan step, whose own file has its times.
            "start_time": plan["start_time"],
            "finish_time": judged["finish_time"],
            "finish_reason": judged["finish_reason"],
            "plans_generated": len(prediction.plans),
            "selected_plan_index": judged["selected"],
            "judge_reasoning": prediction.judgement,
            "judge_cost_usd": float(judged["cost_usd"]),
            "judge_latency_seconds": round((ended - began).total_seconds(), 3),
            "judge_input_tokens": usage and usage.prompt,
            "judge_output_tokens": usage and usage.output,
        }
        answer = prediction.judgement.encode("utf-8", "backslashreplace")  # JSON can have half characters
        files |= {JUDGE_METADATA_FILE: _json(choice), JUDGE_OUTPUT_FILE: answer}
    return files


def _step_logs(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths of the agents' outputs or conversations in the run's folder, by published name."""
    steps = _steps_of(metadata)
    logs = {}
    if StepKind.PLAN in steps:
        logs[PLAN_LOG_FILES[Mode(metadata["mode"])]] = steps[StepKind.PLAN]["attempts"][-1].get("log")
    if StepKind.EXECUTE in steps:
        logs[EXECUTION_LOG_FILE] = steps[StepKind.EXECUTE].get("log")
    return {name: path for name, path in logs.items() if path}


_OF_STEPS = (
    *(*PLAN_METADATA_FILES.values(), JUDGE_METADATA_FILE, JUDGE_OUTPUT_FILE),
    *(*PLAN_LOG_FILES.values(), EXECUTION_LOG_FILE),
)
"""Files that a trial has if these steps of it have a result."""


def _write(folder: Path, files: Mapping[str, bytes], logs: Mapping[str, Path]) -> None:
    for name, content in files.items():
        path = folder / name
        try:
            present = read_regular_file(path)
        except OSError:
            present = None
        if present != content:
            write_atomically(path, content)
    for name in _OF_STEPS:
        try:
            if name in logs:
                with suppress(FileNotFoundError):  # the log was removed since
                    link_file(logs[name], folder / name)
            elif name not in files:  # of an earlier result that was discarded
                (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, f"{folder / name}: cannot be written", JournalError) from error


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
