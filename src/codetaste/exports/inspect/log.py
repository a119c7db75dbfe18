"""Write the trials of one run, agent and setting as one Inspect log.

The log is a zip file with a file for each sample, so that no more than one trial is in memory.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.core.files import storage_error
from codetaste.errors import JournalError
from codetaste.exports.inspect.messages import add_usage
from codetaste.exports.inspect.sample import make_sample, sample_id
from codetaste.exports.trial import safe_name
from codetaste.report.statistics.intervals import mean_interval
from codetaste.results.outcome import OutcomeFacet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from codetaste.exports.trial import ExportedTrial

LOG_VERSION = 2
_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Of Inspect's ids."""
_ID_CHARS = 22
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_UNKNOWN_TIME = "1970-01-01T00:00:00+00:00"


@dataclass(frozen=True, slots=True)
class InspectLog:
    """A log that was written: its path, and the number of its trials by outcome."""

    path: Path
    outcomes: dict[str, int]


def write_log(trials: Sequence[ExportedTrial], folder: Path) -> InspectLog:
    """Write trials of one run, agent and setting to a file in ``folder``, named by them. Blocking.

    Raises:
        StorageFull: no space left.
        JournalError: the file cannot be written.
    """
    first = trials[0]
    name = f"{first.run}/{first.agent}/{first.setting}"
    task = safe_name(first.setting.replace("/", "-")).replace("_", "-")
    agent = safe_name(first.agent).replace("_", "-")
    partial = folder / f".{_inspect_id(name)}.partial"
    made = _LogFile(trials, name, f"{task}-{agent}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
                made.write(archive)
            moment = made.created.replace(":", "-").replace("+", "-")
            path = folder / f"{moment}_{made.task}_{_inspect_id(name)}.eval"
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, folder, JournalError) from error
    return InspectLog(path, made.outcomes)


class _LogFile:
    def __init__(self, trials: Sequence[ExportedTrial], name: str, task: str) -> None:
        self._trials, self._name, self.task = trials, name, task
        self.created = _UNKNOWN_TIME
        self.outcomes: dict[str, int] = {}
        self._usage: dict[str, dict[str, Any] | None] = {}
        self._summaries: list[dict[str, Any]] = []

    def write(self, archive: zipfile.ZipFile) -> None:
        for trial in self._trials:
            sample, summary = make_sample(trial)
            # Inspect finds a sample by this name.
            _put(archive, f"samples/{sample['id']}_epoch_{trial.attempt}.json", sample)
            self._summaries.append(summary)
            self.outcomes[trial.facet.value] = self.outcomes.get(trial.facet.value, 0) + 1
            for model in (*sample["model_usage"], *sample["metadata"]["unknown_usage"]):
                add_usage(self._usage, model, sample["model_usage"].get(model))
        starts = sorted(each["started_at"] for each in self._summaries if "started_at" in each)
        ends = sorted(each["completed_at"] for each in self._summaries if "completed_at" in each)
        if starts:
            self.created = datetime.fromisoformat(starts[0]).astimezone(UTC).isoformat(timespec="seconds")
        spec, plan = self._spec(), {"name": "plan", "steps": [], "config": {}}
        stats = {
            "started_at": starts[0] if starts else "",
            "completed_at": ends[-1] if ends else "",
            "model_usage": {model: usage for model, usage in self._usage.items() if usage is not None},
        }
        header = {
            "version": LOG_VERSION,
            "status": "started" if OutcomeFacet.NOT_ENDED.value in self.outcomes else "success",
            "eval": spec,
            "plan": plan,
            "results": self._results(),
            "stats": stats,
        }
        _put(archive, "_journal/start.json", {"version": LOG_VERSION, "eval": spec, "plan": plan})
        _put(archive, "summaries.json", self._summaries)
        _put(archive, "header.json", header)

    def _spec(self) -> dict[str, Any]:
        first = self._trials[0]
        identity = _inspect_id(self._name)
        ids = list(dict.fromkeys(map(sample_id, self._trials)))
        return {
            "eval_id": identity,
            "run_id": _inspect_id(first.run),
            "created": self.created,
            "task": self.task,
            "task_id": identity,
            "task_version": 0,
            "task_display_name": f"{first.agent}, {first.setting}",
            "dataset": {"name": first.details.get("benchmark"), "samples": len(ids), "sample_ids": ids},
            "model": first.model or "unknown",
            "config": {"epochs": max(trial.attempt for trial in self._trials)},
            "packages": {"codetaste": __version__},
            "scorers": [{"name": name, "metrics": [{"name": "mean"}]} for name in first.scores],
            "metadata": {
                "run": first.run,
                "agent": first.agent,
                "setting": first.setting,
                "harness": first.harness,
                "outcomes": self.outcomes,
            },
        }

    def _results(self) -> dict[str, Any]:
        """Return the mean of each score with its interval, over the trials that have it, failed ones as 0."""
        scores = []
        for name in self._trials[0].scores:
            found = [
                (value, each.instance) for each in self._trials if (value := each.scores[name]) is not None
            ]
            if not found:
                continue
            interval = mean_interval(*zip(*found, strict=True), fractions=True)
            bounds = {"mean": interval.mean, "low": interval.low, "high": interval.high}
            metrics = {
                metric: {"name": metric, "value": value, "params": {}}
                for metric, value in bounds.items()
                if value is not None
            }
            missing = len(self._trials) - len(found)
            counts = {"scored_samples": len(found), "unscored_samples": missing}
            scores.append({"name": name, "scorer": name, **counts, "metrics": metrics})
        ended = len(self._trials) - self.outcomes.get(OutcomeFacet.NOT_ENDED.value, 0)
        return {"total_samples": len(self._trials), "completed_samples": ended, "scores": scores}


def _put(archive: zipfile.ZipFile, name: str, value: Any) -> None:  # noqa: ANN401 - JSON
    # A fixed time, so that the same trials make the same bytes.
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as file:
        for piece in _pieces(value):
            file.write(piece.encode("utf-8", "replace"))


def _pieces(value: Any, depth: int = 2) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield JSON in pieces: the members down to a depth. A whole sample may have hundreds of megabytes."""
    if depth and value and isinstance(value, dict):
        between = "{"
        for name, each in value.items():
            yield f"{between}{_ENCODE(name)}:"
            yield from _pieces(each, depth - 1)
            between = ","
        yield "}"
    elif depth and value and isinstance(value, list):
        between = "["
        for each in value:
            yield between
            yield from _pieces(each, depth - 1)
            between = ","
        yield "]"
    else:
        yield _ENCODE(value)


def _inspect_id(text: str) -> str:
    """Return an id of the form that Inspect makes, the same for the same text."""
    number, chars = int.from_bytes(sha256(text.encode("utf-8", "replace")).digest()), []
    for _ in range(_ID_CHARS):
        number, place = divmod(number, len(_ALPHABET))
        chars.append(_ALPHABET[place])
    return "".join(chars)
