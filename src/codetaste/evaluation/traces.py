"""What an agent did, read from where it is written down: transcripts of a run, logs of published outputs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.evaluation.activity import Activity
from codetaste.evaluation.deeds import Deeds, deeds
from codetaste.evaluation.program_logs import calls_in_output
from codetaste.evaluation.tool_calls import tool_calls
from codetaste.llm.codec import unpack
from codetaste.orchestration.storage import Blobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from codetaste.evaluation.tool_calls import ToolCall

PUBLISHED_LOG = "inference.out"
"""What the published harness keeps of what the agent's container printed."""
_STEP = "execute"
_LINE = 16 * 1024**2
"""A longer line is passed over."""
_MOST_SHELL = 16 * 1024**2
"""Characters of shell that are read of one trial; commands beyond are not read."""
_ATTEMPT = re.compile(r"\.attempt-(\d+)\.jsonl")
_CALLS = (b"function_call", b"custom_tool_call", b"local_shell_call", b"tool_use", b"tool_calls")
"""Words of which one stands in every part that has calls."""


def run_activity(run: Path, trial_key: str) -> Activity | None:
    """Count what an agent did in the execution step of a trial of ours; blocking.

    Read is the transcript of our own loop, or the last one of a program in which its model answered; what the
    program printed where there is none. What cannot be read is passed over.

    Args:
        run: the run's folder.
        trial_key: what its jobs' keys begin with: ``infer/<agent>/<track>/<mode>/<instance>[/attempt-n]``.

    Returns:
        None where there is no transcript: what the agent did is not known then.
    """
    own = run / "transcripts" / trial_key / f"{_STEP}.jsonl"
    if own.is_file():
        return count(_own_calls(own))
    transcripts = _attempts(run / "transcripts" / trial_key)
    answered = next((found for path in transcripts if (found := _Said.read(path)).answers), None)
    if answered is not None:
        return count(answered.calls(Blobs(run / "blobs")))
    if transcripts:
        return Activity()
    printed = _attempts(run / "events" / trial_key)
    return count(calls_in_output(_lines(printed[0]))) if printed else None


def published_activity(folder: Path) -> Activity | None:
    """Count what an agent did by the log that the published harness left beside its patch; blocking.

    Returns:
        None where there is no log, or none that tells of any call: a program that does not say what it does
        cannot be told from one that does nothing.
    """
    log = folder / PUBLISHED_LOG
    if not log.is_file():
        return None
    found = count(calls_in_output(_lines(log)))
    return found if found.commands or found.edits else None


def count(calls: Iterable[ToolCall]) -> Activity:
    """Count calls by what they do."""
    commands = edits = every = patches = 0
    known: dict[str, Deeds] = {}
    seen: list[Deeds] = []
    left = _MOST_SHELL
    for call in calls:
        if call.shell is None:
            edits += 1
            every += call.every
            continue
        commands += 1
        if call.shell not in known:
            left -= len(call.shell)
            known[call.shell] = deeds(call.shell) if left >= 0 else Deeds(whole=False)
        seen.append(known[call.shell])
    patches = sum(deed.patches for deed in seen)
    return Activity(
        commands=commands,
        test_runs=sum(deed.tests for deed in seen),
        bulk_edits=sum(deed.bulk for deed in seen),
        wide_edits=sum(deed.wide for deed in seen),
        scripted_edits=sum(deed.scripted for deed in seen),
        edits=edits + patches,
        replace_all=every,
        unread=sum(not deed.whole for deed in seen),
    )


def _attempts(folder: Path) -> list[Path]:
    """Return the files of a program's attempts at the step, the last one first."""
    found = [
        (int(each[1]), path)
        for path in folder.glob(f"{_STEP}.attempt-*.jsonl")
        if (each := _ATTEMPT.search(path.name))
    ]
    return [path for _, path in sorted(found, reverse=True)]


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that are not absurdly long; a file that cannot be read has none."""
    try:
        with path.open("rb") as file:
            whole = True
            while line := file.readline(_LINE):
                ended = line.endswith(b"\n")
                if whole and (ended or len(line) < _LINE):
                    yield line
                whole = ended
    except OSError:
        return


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _own_calls(path: Path) -> Iterator[ToolCall]:
    for line in _lines(path):
        if b'"call"' in line:
            yield from tool_calls(_unpacked(_parsed(line)))


def _unpacked(value: Any) -> Any:  # noqa: ANN401 - JSON
    try:
        return unpack(value)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


@dataclass(slots=True)
class _Said:
    """What a transcript of the gateway has of a model's answers: the names of their parts, and the parts."""

    answers: int = 0
    said: list[str] = field(default_factory=list)
    parts: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> _Said:
        """Read a transcript; requests and answers that failed are passed over."""
        found = cls()
        for line in _lines(path):
            if b'"kind":"message"' in line:
                if b'"kept":' in line or any(word in line for word in _CALLS):
                    part = _parsed(line)
                    found.parts.setdefault(str(part.get("part")), line)
            elif b'"reply":' in line:
                reply = _parsed(line)
                if isinstance(reply.get("reply"), int) and not reply.get("error"):
                    found.answers += 1
                    names = reply.get("said")
                    found.said += map(str, names if isinstance(names, list) else ())
        return found

    def calls(self, blobs: Blobs) -> Iterator[ToolCall]:
        """Yield the calls of all answers, in order."""
        for name in self.said:
            part = _parsed(self.parts.get(name, b""))
            value = _kept(part["kept"], blobs) if "kept" in part else part.get("value")
            yield from tool_calls(_unpacked(value))


def _kept(digest: object, blobs: Blobs) -> Any:  # noqa: ANN401 - JSON
    """Read a long part beside the journal; None where it is missing or damaged."""
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        return None
    try:
        data = blobs.path(digest).read_bytes()
        return json.loads(data) if sha256(data).hexdigest() == digest else None
    except (OSError, ValueError, RecursionError):
        return None
