"""The metadata files beside a trial's patch, in the published layout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste import __version__
from codetaste.benchmark.layout import (
    AGENT_CONFIG_FILE,
    METADATA_FILE,
    OUTPUTS_FOLDER,
    PLAN_FILE,
    PLAN_FILES,
    PREDICTION_FILE,
    FinishReason,
    trial_folder,
)
from codetaste.benchmark.trial_identity import StepKind
from codetaste.core.files import read_regular_file, write_atomically
from codetaste.core.units import format_exact_usd
from codetaste.flows.infer.results import ExecuteResult, JudgeResult
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
    """

    finish_reason: FinishReason
    finished_at: str
    message: str = ""
    patch: ExtractedPatch | None = None
    interruption: str = ""


def inference_metadata(
    trial: Trial,
    context: InferenceContext,
    steps: Mapping[str, StepMetadata],
    money: BudgetSnapshot,
    end: TrialEnd,
) -> dict[str, Any]:
    """Return ``inference_metadata.json`` of a trial; ``steps`` has the results of its finished steps by name.

    ``cost_usd`` is the measured cost of the calls of all steps together; a call of unknown cost counts with
    the amount that was reserved for it. A run whose calls codetaste does not serve counts with the cost that
    the agent reports; ``unmetered_usd`` is the sum of these.
    """
    patch = end.patch or ExtractedPatch(b"", 0, "")
    runs = [run for step in steps.values() for run in step.runs]
    usage = sum((usage_from_json(run["tokens"]) or Usage() for run in runs), Usage())
    unmetered = sum(
        (Decimal(run.get("reported_cost_usd", 0)) for run in runs if "cost_usd" not in run), Decimal()
    )
    judged = steps.get(StepKind.JUDGE)
    return {
        "cost_usd": float(money.settled.usd + money.unknown.usd + unmetered),
        "finish_reason": end.finish_reason,
        "start_time": (str(runs[0]["start_time"]) if runs else "") or end.finished_at,
        "finish_time": end.finished_at,
        "description_type": str(trial.track.track),
        "mode": trial.track.mode,
        "additional": {
            "turns": sum(run.get("turns", 0) for run in runs),
            "tool_calls": sum(run.get("tool_calls", 0) for run in runs),
            "tokens": usage_to_json(usage),
            "settled_usd": format_exact_usd(money.settled.usd),
            "unknown_usd": format_exact_usd(money.unknown.usd),
            **({"unmetered_usd": format_exact_usd(unmetered)} if unmetered else {}),
            "attempt": trial.attempt,
            "budgets": trial.track.budgets,
            "harness": trial.agent.harness,
            "harness_version": context.runner(trial.agent).version,
            "codetaste_version": __version__,
            "sandbox": context.agents.sandboxes.kind,
            "image": context.agents.sandbox_config.image,
            "patch_bytes": len(patch.patch),
            "patch_files": patch.files,
            "patch_problem": patch.problem,
            "patch_notes": list(patch.notes),
            "selected_plan": judged.selected if isinstance(judged, JudgeResult) else None,
            "steps": {name: step.metadata() for name, step in steps.items()},
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
    """The content of all files of one trial. ``metadata`` is ``inference_metadata.json``."""

    patch: bytes
    metadata: Mapping[str, Any]
    plans: Sequence[str] = ()

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
    return Prediction(patch, result.metadata, [await blobs.load(digest) for digest in result.plans])


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
    }
    await to_thread.run_sync(_write, output_folder(context.out, trial), files)


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


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        try:
            present = read_regular_file(path)
        except OSError:
            present = None
        if present != content:
            write_atomically(path, content)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
