"""The output files of a trial in the published layout (DESIGN §6): the patch, the plans and their metadata.

Every file is written under a temporary name and renamed; ``inference_metadata.json`` comes last, so a folder
that has it is complete. Records that no executing agent may see (the judge's, transcripts, events) are
elsewhere in the run's folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.atomic import write_atomically
from codetaste.flows.effort import ERROR
from codetaste.flows.metadata import agent_config
from codetaste.flows.plan_files import PLAN_FILE, PLAN_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.site import InferenceContext
    from codetaste.flows.trials import Trial
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.storage import Blobs

PATCH_FILE, METADATA_FILE, AGENT_CONFIG_FILE = (
    "prediction.diff",
    "inference_metadata.json",
    "agent_config.json",
)


def outputs_root(out: Path) -> Path:
    """Return the folder of all predictions of the run in ``out``."""
    return out / "outputs"


def output_folder(out: Path, trial: Trial) -> Path:
    """Return the folder of ``trial``'s prediction; attempts after the first have sub-folders of it."""
    track = trial.track
    first = outputs_root(out) / track.track / track.mode / trial.instance.path / trial.agent.id
    return first if trial.attempt == 1 else first / f"attempt-{trial.attempt}"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The content of all files of one trial. ``metadata`` is ``inference_metadata.json``."""

    patch: bytes
    metadata: Mapping[str, Any]
    plans: Sequence[str] = ()

    async def store(self, job: JobContext) -> dict[str, Any]:
        """Return JSON data with the digests of the long texts, which are stored in the journal's blobs."""
        return {
            "patch": await job.store_text(self.patch.decode("utf-8", "surrogateescape")),
            "plans": [await job.store_text(text) for text in self.plans],
            "metadata": dict(self.metadata),
        }


async def load_prediction(data: Mapping[str, Any], blobs: Blobs) -> Prediction:
    """Load the prediction whose JSON data ``Prediction.store`` returned.

    Raises:
        JournalError: a text is missing or damaged.
    """
    patch = (await blobs.load(data["patch"])).encode("utf-8", "surrogateescape")
    return Prediction(patch, data["metadata"], [await blobs.load(digest) for digest in data["plans"]])


async def write_prediction(
    out: Path, trial: Trial, prediction: Prediction, context: InferenceContext
) -> None:
    """Write the files of ``trial``; a file that already has its content is not touched.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    names = (PLAN_FILE,) if len(prediction.plans) == 1 else PLAN_FILES
    files = {
        PATCH_FILE: prediction.patch,
        **{name: text.encode() for name, text in zip(names, prediction.plans, strict=False)},
        AGENT_CONFIG_FILE: _json(agent_config(trial, context)),
        METADATA_FILE: _json(prediction.metadata),
    }
    await to_thread.run_sync(_write, output_folder(out, trial), files)


async def is_partial(out: Path, trial: Trial) -> bool:
    """Whether the files of ``trial`` are a partial prediction of an interrupted execute step."""
    metadata = await to_thread.run_sync(_read_metadata, output_folder(out, trial) / METADATA_FILE)
    return metadata is not None and "interrupted" in metadata["additional"]


async def has_outcome(out: Path, trial: Trial) -> bool:
    """Whether the files of ``trial`` are an outcome or a partial prediction, not a record of a failure."""
    metadata = await to_thread.run_sync(_read_metadata, output_folder(out, trial) / METADATA_FILE)
    return metadata is not None and metadata["finish_reason"] != ERROR


def _read_metadata(path: Path) -> dict[str, Any] | None:
    try:
        metadata: dict[str, Any] = json.loads(path.read_bytes())
        _ = metadata["finish_reason"], metadata["additional"].keys()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return metadata


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        try:
            present = path.read_bytes()
        except OSError:
            present = None
        if present != content:
            write_atomically(path, content)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
