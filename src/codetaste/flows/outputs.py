"""What a trial leaves, in the published layout (DESIGN §6): the patch, the plans, and what is told of them.

Every file is written under a temporary name and renamed; ``inference_metadata.json`` comes last, so that a
folder with it is whole. Records that no executing agent may see (the judge's, transcripts, events) lie
elsewhere in the run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.atomic import write_atomically
from codetaste.flows.effort import ERROR
from codetaste.flows.metadata import agent_config
from codetaste.flows.plan_files import MANY, ONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Trial
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.storage import Blobs

PATCH, METADATA, AGENT = "prediction.diff", "inference_metadata.json", "agent_config.json"


def outputs_root(out: Path) -> Path:
    """Return where the predictions of the run in ``out`` lie."""
    return out / "outputs"


def output_folder(out: Path, trial: Trial) -> Path:
    """Return where the prediction of ``trial`` lies; attempts after the first have folders below."""
    track = trial.track
    first = outputs_root(out) / track.track / track.mode / trial.instance.path / trial.agent.id
    return first if trial.attempt == 1 else first / f"attempt-{trial.attempt}"


@dataclass(frozen=True, slots=True)
class Prediction:
    """All files of one trial. ``metadata`` is ``inference_metadata.json``."""

    patch: bytes
    metadata: Mapping[str, Any]
    plans: Sequence[str] = ()

    async def kept(self, job: JobContext) -> dict[str, Any]:
        """Return it as JSON data whose long texts are kept by digest."""
        return {
            "patch": await job.keep(self.patch.decode("utf-8", "surrogateescape")),
            "plans": [await job.keep(text) for text in self.plans],
            "metadata": dict(self.metadata),
        }


async def fetched(kept: Mapping[str, Any], blobs: Blobs) -> Prediction:
    """Return the prediction that ``kept`` made JSON data of.

    Raises:
        JournalError: a text is missing or damaged.
    """
    patch = (await blobs.fetch(kept["patch"])).encode("utf-8", "surrogateescape")
    return Prediction(patch, kept["metadata"], [await blobs.fetch(digest) for digest in kept["plans"]])


async def write_prediction(out: Path, trial: Trial, prediction: Prediction, site: Site) -> None:
    """Write the files of ``trial``; what is there already stays as it is.

    Raises:
        JournalError: they cannot be written; StorageFull among them.
    """
    names = (ONE,) if len(prediction.plans) == 1 else MANY
    files = {
        PATCH: prediction.patch,
        **{name: text.encode() for name, text in zip(names, prediction.plans, strict=False)},
        AGENT: _json(agent_config(trial, site)),
        METADATA: _json(prediction.metadata),
    }
    await to_thread.run_sync(_write, output_folder(out, trial), files)


async def interrupted(out: Path, trial: Trial) -> bool:
    """Whether what lies there of ``trial`` is no outcome, but what an interrupted execution had so far."""
    told = await to_thread.run_sync(_told, output_folder(out, trial) / METADATA)
    return told is not None and "interrupted" in told["additional"]


async def left_something(out: Path, trial: Trial) -> bool:
    """Whether an outcome of ``trial`` lies there, or what an interrupted execution had so far."""
    told = await to_thread.run_sync(_told, output_folder(out, trial) / METADATA)
    return told is not None and told["finish_reason"] != ERROR


def _told(metadata: Path) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = json.loads(metadata.read_bytes())
        _ = told["finish_reason"], told["additional"].keys()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return told


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        try:
            there = path.read_bytes()
        except OSError:
            there = None
        if there != content:
            write_atomically(path, content)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
